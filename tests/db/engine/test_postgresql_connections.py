"""How connections to a PostgreSQL server are made."""

from __future__ import annotations

import pytest

from compilewatch.db.engine.session import open_database

LOST_AFTER = {
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}


def parameters(url: str) -> dict[str, str]:
    """What libpq was told, as it tells it."""
    with open_database(url, migrate=True) as database, database.read() as connection:
        driver = connection.connection.driver_connection
        told: dict[str, str] = driver.info.get_parameters()
        return told


def test_a_server_that_went_away_is_noticed_within_a_minute(empty_postgres_url: str) -> None:
    told = parameters(empty_postgres_url)
    assert {name: told[name] for name in LOST_AFTER} == LOST_AFTER


@pytest.mark.parametrize(("name", "value"), [("keepalives_idle", "7"), ("tcp_user_timeout", "1000")])
def test_what_the_address_says_goes_before(empty_postgres_url: str, name: str, value: str) -> None:
    mark = "&" if "?" in empty_postgres_url else "?"
    assert parameters(f"{empty_postgres_url}{mark}{name}={value}")[name] == value
