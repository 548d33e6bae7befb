"""Enqueues a record for every response. Safe to run in every container, and as often as you like.

`python enqueue.py --sample 1000` makes the two tables and so many responses first.
"""

import argparse

from sqlalchemy import text
from tasks import QUESTIONS, app

TABLES = (
    "CREATE TABLE survey_responses (survey_id integer PRIMARY KEY, customer text, q1 integer, q2 integer, q3 integer)",
    # No unique key, so that a survey scored twice would show.
    "CREATE TABLE survey_scores (survey_id integer, customer text, score real, token bigint)",
)


def make_sample(count: int) -> None:
    """Every hundredth response has no answers."""
    rows = [
        {
            "survey_id": number,
            "customer": f"customer-{number % 20}",
            **{
                question: None if number % 100 == 0 else (number * step) % 5 + 1
                for step, question in enumerate(QUESTIONS, 1)
            },
        }
        for number in range(1, count + 1)
    ]
    with app.ledger.engine.begin() as connection:
        for table in TABLES:
            connection.execute(text(table))
        connection.execute(
            text("INSERT INTO survey_responses VALUES (:survey_id, :customer, :q1, :q2, :q3)"), rows
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--sample", type=int, default=0, metavar="N", help="make the tables and N responses first"
    )
    sample = parser.parse_args().sample
    with app:
        if sample:
            make_sample(sample)
        with app.ledger.engine.connect() as connection:
            found = connection.execute(
                text("SELECT survey_id FROM survey_responses ORDER BY survey_id")
            ).all()
        payloads = [{"survey_id": row.survey_id} for row in found]
        done = app.enqueue("score_survey", payloads, key=lambda payload: payload["survey_id"])
    print(f"{done.accepted} accepted, {done.known} already known")


if __name__ == "__main__":
    main()
