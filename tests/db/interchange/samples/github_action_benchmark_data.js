window.BENCHMARK_DATA = {
 "lastUpdate": 1770000000000,
 "repoUrl": "https://example.org/acme/x",
 "entries": {
  "CPU Benchmark Results": [
   {
    "commit": {
     "id": "c0ffeec0ffeec0ffeec0ffeec0ffeec0ffeec0ff",
     "message": "m",
     "timestamp": "2026-01-01T10:00:00+00:00"
    },
    "date": 1770000000000,
    "tool": "pytest",
    "benches": [
     {
      "name": "test_a.py::test_x",
      "value": 50000.0,
      "unit": "iter/sec",
      "range": "stddev: 1e-6",
      "extra": "mean: 20.0 usec\nrounds: 100"
     }
    ]
   }
  ]
 }
}
