UPDATE rowlock.fake_clock SET seconds = seconds + %(seconds)s RETURNING seconds
