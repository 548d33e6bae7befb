"""The demo's program: it scores surveys. Run it as often as you like; every survey is scored once.

`python -m rowlock.proof.surveys` is one worker.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

from rowlock import Backoff, Record, Reject, Rowlock

if TYPE_CHECKING:
    from collections.abc import Iterator

FLOW = "score_survey"
QUESTIONS = 5
# Every so many surveys one is about a customer whom nobody has entered yet, and one has no answers at all.
UNKNOWN_CUSTOMER_EVERY = 250
NO_ANSWERS_EVERY = 2000
UNKNOWN_CUSTOMER = "CUST-UNKNOWN"

# No unique key: a survey that was scored twice would show.
TABLES = (
    "CREATE TABLE customers (customer_id TEXT PRIMARY KEY)",
    "CREATE TABLE processed_surveys (survey_id TEXT, score REAL, record_id INTEGER, token INTEGER)",
)

app = Rowlock()


@app.flow(FLOW, max_attempts=2, backoff=Backoff(base=0.05, cap=0.2), concurrency=4)
def score_survey(record: Record) -> None:
    """Reads the customer, scores the answers, writes the score; the score and the completion are one commit."""
    survey = record.payload
    answers = survey["answers"]
    if not answers:
        raise Reject("the survey has no answers")
    time.sleep(0.001)  # what a real handler would spend on the network
    with record.transaction() as tx:
        found = tx.execute("SELECT 1 FROM customers WHERE customer_id = :customer_id", survey).first()
        if found is None:
            raise LookupError(f"customer {survey['customer_id']} is not known")
        score = sum(answers) / len(answers)
        tx.execute(
            "INSERT INTO processed_surveys VALUES (:survey_id, :score, :record_id, :token)",
            {"survey_id": survey["survey_id"], "score": score, "record_id": record.id, "token": record.token},
        )
        tx.result = {"score": score}


def sample_surveys(count: int) -> Iterator[dict[str, Any]]:
    """So many surveys, the same every time; a few of them bad."""
    for number in range(1, count + 1):
        bad_customer = number % UNKNOWN_CUSTOMER_EVERY == 0
        no_answers = number % NO_ANSWERS_EVERY == 7
        yield {
            "survey_id": f"SURV-{number:06d}",
            "customer_id": UNKNOWN_CUSTOMER if bad_customer else f"CUST-{number % 100:03d}",
            "answers": []
            if no_answers
            else [(number * step) % QUESTIONS + 1 for step in range(1, QUESTIONS + 1)],
        }


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    app.worker().run()
