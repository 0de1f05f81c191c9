"""The special functions are those of scipy, whose whole package can be imported afterwards."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from db.metrics import special

X = np.geomspace(0.05, 500, 40)


@pytest.mark.parametrize(
    ("name", "before"),
    [("ndtr", ()), ("digamma", ()), ("stdtr", (3.5,)), ("chdtri", (7,)), ("fdtrc", (2, 9))],
)
def test_they_are_those_of_scipy(name: str, before: tuple[float, ...]) -> None:
    from scipy import special as whole

    arguments = (*before, X / 501) if name == "chdtri" else (*before, X)
    assert_allclose(getattr(special, name)(*arguments), getattr(whole, name)(*arguments), rtol=0)


@pytest.mark.parametrize(("name", "order"), [("trigamma", 1), ("tetragamma", 2)])
def test_derivatives_of_digamma_are_polygamma(name: str, order: int) -> None:
    from scipy import special as whole

    assert_allclose(getattr(special, name)(X), whole.polygamma(order, X), rtol=1e-14)


def test_quantiles_invert_their_distributions() -> None:
    share = np.linspace(0.001, 0.999, 21)
    assert_allclose(special.ndtr(special.ndtri(share)), share, rtol=1e-12)
    assert_allclose(special.stdtr(4.0, special.stdtrit(4.0, share)), share, rtol=1e-9)
