"""Scores survey responses: reads a source table, writes a target table, each survey once.

One worker is `rowlock worker tasks`. Start as many as you like, in as many containers as you like.
"""

from rowlock import Backoff, Record, Reject, Rowlock

app = Rowlock()  # sqlite:///rowlock.db here, or what ROWLOCK_LEDGER_URL says

QUESTIONS = ("q1", "q2", "q3")


@app.flow("score_survey", max_attempts=3, backoff=Backoff(base=0.2, cap=5), timeout=30, concurrency=4)
def score_survey(record: Record) -> None:
    """The score and the completion are one commit: killed at any point, the survey has both or neither."""
    with record.transaction() as tx:
        response = (
            tx.execute(
                "SELECT customer, q1, q2, q3 FROM survey_responses WHERE survey_id = :survey_id",
                record.payload,
            )
            .mappings()
            .first()
        )
        if response is None:
            raise Reject("there is no such response")
        answers = [response[question] for question in QUESTIONS if response[question] is not None]
        if not answers:
            raise Reject("the survey has no answers")
        score = round(sum(answers) / len(answers), 2)
        tx.execute(
            "INSERT INTO survey_scores (survey_id, customer, score, token) VALUES (:survey_id, :customer, :score, :token)",
            {**record.payload, "customer": response["customer"], "score": score, "token": record.token},
        )
        tx.result = {"score": score}
