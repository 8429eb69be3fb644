"""Tables for the example tables.py: a shop and a bank that do not exist.

    python examples/table_data.py FOLDER

Writes FOLDER/shop with customers, products and orders, and FOLDER/bank with cards, merchants and
payments, as Parquet files. Takes a second.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FIRST = np.datetime64("2025-01-01", "s")
DAYS = 360


def shop(folder: Path, customers: int = 5000, products: int = 300, seed: int = 0) -> None:
    """Writes customers, products and orders: how soon a customer comes back depends on the product
    of the last order, and on the customer's own pace."""
    random = np.random.default_rng(seed)
    # Days until the next order, in the mean: some products are used up sooner than others.
    lasts = random.choice([10.0, 40.0, 160.0], products)
    age = random.integers(18, 80, customers)
    pace = random.lognormal(0, 0.3, customers) * np.where(age < 40, 0.8, 1.2)
    who, what, when = [], [], []
    alive, day = np.arange(customers), random.uniform(0, 90, customers)
    while len(alive):
        bought = random.integers(0, products, len(alive))
        who.append(alive)
        what.append(bought)
        when.append(day)
        day = day + random.exponential(lasts[bought] * pace[alive])
        alive, day = alive[day < DAYS], day[day < DAYS]
    days = np.concatenate(when)
    order = np.argsort(days)
    columns = np.concatenate(who)[order], np.concatenate(what)[order]
    # A price says something about how long a product lasts, a product's orders say more.
    price = lasts * random.lognormal(0, 1, products)
    _write(folder / "shop", "customers", customer_id=np.arange(customers), age=age)
    _write(folder / "shop", "products", product_id=np.arange(products), price=price)
    _write(
        folder / "shop",
        "orders",
        order_id=np.arange(len(days)),
        customer_id=columns[0],
        product_id=columns[1],
        ordered_at=_dates(days[order]),
    )


def bank(folder: Path, payments: int = 60_000, seed: int = 0) -> None:
    """Writes cards, merchants and payments, of which some are frauds: they come in bursts, at
    merchants where there were others, with amounts that are unusual for the card."""
    random = np.random.default_rng(seed)
    cards, merchants = payments // 30, payments // 100
    usual, leaky = random.lognormal(3, 1, cards), random.random(merchants) < 0.03
    days = np.sort(random.uniform(0, DAYS, payments))
    card, merchant = random.integers(0, cards, payments), random.integers(0, merchants, payments)
    stolen = np.flatnonzero(leaky[merchant] & (random.random(payments) < 0.5))
    # After a payment to a merchant that leaks, a card is misused some times within a day.
    victims = np.repeat(stolen, 3)
    frauds = random.random(len(victims)) < 0.8
    victims = victims[frauds]
    at = days[victims] + random.uniform(0, 1, len(victims))
    columns = {
        "days": np.concatenate([days, at]),
        "card": np.concatenate([card, card[victims]]),
        "merchant": np.concatenate([merchant, random.integers(0, merchants, len(victims))]),
        "fraud": np.repeat([False, True], [payments, len(victims)]),
    }
    order = np.argsort(columns["days"])
    days, card, merchant, fraud = (column[order] for column in columns.values())
    amount = usual[card] * random.lognormal(0, 0.5, len(days)) * np.where(fraud, 2, 1)
    _write(folder / "bank", "cards", card_id=np.arange(cards), limit=np.round(usual * 50))
    _write(folder / "bank", "merchants", merchant_id=np.arange(merchants))
    _write(
        folder / "bank",
        "payments",
        payment_id=np.arange(len(days)),
        card_id=card,
        merchant_id=merchant,
        paid_at=_dates(days),
        amount=amount,
        fraud=fraud,
    )


def _dates(days: Any) -> Any:
    return (FIRST + (days * 86_400).astype(np.int64)).astype("datetime64[us]")


def _write(folder: Path, name: str, **columns: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), folder / f"{name}.parquet")


if __name__ == "__main__":
    shop(Path(sys.argv[1]))
    bank(Path(sys.argv[1]))
