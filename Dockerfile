# The dashboard by default, the runner by command:
#   docker build -t compilewatch .
#   docker run -p 127.0.0.1:8501:8501 -v compilewatch:/data compilewatch
#   docker run --gpus all -v compilewatch:/data -v "$PWD:/project:ro" compilewatch run --suite standard
# It also runs with a read-only root: --read-only --tmpfs /tmp:exec (compiled kernels are loaded from /tmp).

# To build on the very same base again: --build-arg BASE=python:3.11-slim@sha256:...
ARG BASE=python:3.11-slim
FROM ${BASE} AS build
ARG EXTRAS=postgres,models,auth,fleet,notify,trace
# Another index beside pip's own, where it finds the build of torch that is wanted.
ARG PIP_EXTRA_INDEX_URL
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
RUN python3 -m venv /opt/compilewatch
WORKDIR /src
# Dependencies first, on their own: an edited source file does not install torch again.
# All of them by the hash of their file; torch alone, and what its CUDA build brings, by version: which build it is,
# is decided by the index that pip is given here.
COPY pyproject.toml constraints.txt README.md LICENSE docker/requirements*.lock ./
COPY compilewatch/__init__.py compilewatch/__init__.py
RUN /opt/compilewatch/bin/pip install --require-hashes --no-deps --only-binary :all: --requirement requirements.lock \
    && case ",${EXTRAS}," in \
        *,models,*) /opt/compilewatch/bin/pip install --require-hashes --no-deps --only-binary :all: \
            --requirement requirements-models.lock ;; \
    esac \
    && /opt/compilewatch/bin/pip install --constraint constraints.txt --no-build-isolation ".[${EXTRAS}]" \
    && /opt/compilewatch/bin/pip check
COPY compilewatch compilewatch
COPY db db
COPY runner runner
COPY dashboard dashboard
COPY docs/measured/*.jsonl docs/measured/
COPY docs/measured/h100/*.jsonl docs/measured/h100/
RUN /opt/compilewatch/bin/pip install --no-build-isolation --no-deps --force-reinstall .
# What is inside, with versions and licences, as CycloneDX: /opt/compilewatch/sbom.cdx.json in the image.
RUN python3 -m venv /opt/sbom \
    && /opt/sbom/bin/pip install --require-hashes --no-deps --only-binary :all: --requirement requirements-sbom.lock \
    && /opt/sbom/bin/cyclonedx-py environment --output-reproducible \
        --output-file /opt/compilewatch/sbom.cdx.json /opt/compilewatch/bin/python

FROM ${BASE}
# g++: torch.compile compiles with it on a CPU, and Triton its launchers on a GPU. git: which commit is measured.
# tini: reaps what trials leave.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends g++ git tini \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --gid 10001 compilewatch \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /data --shell /usr/sbin/nologin compilewatch \
    && install -d -o compilewatch -g compilewatch /data \
    && install -d -m 1777 /tmp/compilewatch-locks
COPY --from=build /opt/compilewatch /opt/compilewatch
COPY --chmod=755 docker/entrypoint /usr/local/bin/entrypoint
ENV PATH=/opt/compilewatch/bin:/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin \
    HOME=/data \
    TMPDIR=/tmp \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    COMPILEWATCH_DATABASE_URL=sqlite:////data/compilewatch.db \
    COMPILEWATCH_DATA_DIR=/data/.compilewatch \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=5s --start-period=180s --retries=3 \
    CMD ["python3", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8501/_stcore/health', timeout=4)"]
ENTRYPOINT ["/usr/bin/tini", "--", "entrypoint"]
# Inside the container the dashboard listens on every address; who reaches it is decided where the port is published.
CMD ["dashboard", "--host", "0.0.0.0", "--allow-public"]
