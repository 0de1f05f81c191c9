"""Special functions, as `scipy.special` has them.

Its package wraps each for other array libraries, for which it imports numpy's tests and f2py. That takes a
tenth of a command, so its extension module is imported without it.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from numpy.typing import ArrayLike

_PACKAGE = "scipy.special"


def _extension() -> Any:
    if _PACKAGE in sys.modules:
        from scipy.special import _ufuncs

        return _ufuncs
    scipy = find_spec("scipy")
    assert scipy is not None
    package = ModuleType(_PACKAGE)
    package.__path__ = [f"{root}/special" for root in scipy.submodule_search_locations or ()]
    sys.modules[_PACKAGE] = package
    try:
        from scipy.special import _ufuncs
    finally:
        # Whoever imports the package later has the whole of it.
        del sys.modules[_PACKAGE]
    return _ufuncs


_ufuncs = _extension()
chdtri, digamma, fdtrc, ndtr, ndtri = _ufuncs.chdtri, _ufuncs.psi, _ufuncs.fdtrc, _ufuncs.ndtr, _ufuncs.ndtri
stdtr, stdtrit = _ufuncs.stdtr, _ufuncs.stdtrit


def trigamma(x: ArrayLike) -> Any:
    """The second derivative of the logarithm of the gamma function; `scipy.special.polygamma(1, x)`."""
    return _ufuncs._zeta(2, x)


def tetragamma(x: ArrayLike) -> Any:
    """The derivative of `trigamma`; `scipy.special.polygamma(2, x)`."""
    return -2 * _ufuncs._zeta(3, x)
