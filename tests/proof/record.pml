/* One record, workers that fall silent and come back, a reaper, an operator: the protocol of docs/explanation/
   state-machines.md, small enough to be searched through completely by Spin.

   Each atomic block is one statement or one transaction of the ledger. A worker may stop for ever, or for any time,
   between any two of them. Three mutations must each be caught:
     NO_TOKEN_CHECK  a settling does not look at the token
     NO_RISE         a takeover leaves the token as it was
     TWO_COMMITS     the effect commits before the completion does
*/
#define WORKERS 2
#define INSTANCES 3   /* incarnations in all: a worker that lost its lease goes on as a new one */
#define ATTEMPTS 3    /* claims in all */
#define NOBODY 255

mtype = { pending, processing, retry_wait, completed, cancelled };

mtype state = pending;
byte token = 0;
byte holder = NOBODY;
byte effects = 0;            /* committed, and never taken back */
byte claims = 0;
byte last_claimed = 0;       /* the highest token that a claim has given out */
bool paused = false;
bool late[INSTANCES];        /* one lease has passed since its last heartbeat */
bool dead[INSTANCES];        /* the ledger has declared it dead */
byte instances = 0;

#ifdef NO_TOKEN_CHECK
#define MINE (state != completed && state != cancelled)
#else
#define MINE (token == mine && state != completed && state != cancelled)
#endif

/* Promise 2: whoever changes a record is its holder. Promise 4: effects once. */
inline only_the_holder() { assert(holder == me) }
inline effect() { effects++; assert(effects <= 1) }

proctype Worker() {
    byte me, mine;

register:
    if
    :: atomic { instances < INSTANCES -> me = instances; instances++ }
    :: atomic { instances >= INSTANCES -> goto gone }
    fi;

idle:
    if
    :: atomic { state == pending && !paused && !dead[me] && !late[me] && claims < ATTEMPTS ->
           assert(holder == NOBODY);          /* promise 1: one holder */
           state = processing; holder = me; token++; claims++; mine = token;
           assert(mine > last_claimed);       /* promise 1: tokens only rise */
           last_claimed = mine }
    :: atomic { !dead[me] && late[me] -> late[me] = false; goto idle }     /* a heartbeat, just in time */
    :: dead[me] -> goto register
    :: goto gone
    fi;

work:
    if
#ifdef TWO_COMMITS
    :: atomic { MINE -> effect() };
       atomic { MINE -> only_the_holder(); state = completed; holder = NOBODY }; goto gone
#else
    :: atomic { MINE -> effect(); only_the_holder(); state = completed; holder = NOBODY }; goto gone
#endif
    :: atomic { MINE -> only_the_holder(); state = retry_wait; token++; holder = NOBODY }; goto idle    /* fail */
    :: atomic { MINE -> only_the_holder(); state = pending; token++; holder = NOBODY }; goto idle       /* hand back */
    :: atomic { !MINE -> skip }; goto idle                                 /* LeaseLost: nothing was written */
    :: atomic { !dead[me] && late[me] -> late[me] = false }; goto work     /* a heartbeat */
    :: goto gone                                                           /* killed; or stopped for ever */
    fi;

gone:
    skip
}

/* Time passes: any instance may be late at any moment. */
proctype Clock() {
    byte who;
end:
    do
    :: atomic { select(who : 0 .. INSTANCES - 1); who < instances && !late[who] -> late[who] = true }
    od
}

/* Any live instance: buries the late, takes over from the dead, lets the waiting run. */
proctype Reaper() {
    byte who;
end:
    do
    :: atomic { select(who : 0 .. INSTANCES - 1); late[who] && !dead[who] -> dead[who] = true }
    :: atomic { state == processing && holder != NOBODY && dead[holder] ->
           state = pending; holder = NOBODY;
#ifndef NO_RISE
           token++
#endif
       }
    :: atomic { state == retry_wait -> state = pending }
    od
}

proctype Operator() {
end:
    do
    :: atomic { paused = !paused }
    :: atomic { state != completed && state != cancelled -> state = cancelled; token++; holder = NOBODY; break }
    od
}

/* Promise 3: settled means settled, and completed means that the effect is there. */
active proctype Check() {
end:
    do
    :: atomic { state == completed -> assert(effects == 1); break }
    :: atomic { state == cancelled -> assert(effects == 0); break }
    od
}

init {
    atomic {
        byte n;
        for (n : 1 .. WORKERS) { run Worker() }
        run Clock(); run Reaper(); run Operator()
    }
}
