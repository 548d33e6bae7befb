UPDATE rowlock.fake_clock SET seconds = 0
