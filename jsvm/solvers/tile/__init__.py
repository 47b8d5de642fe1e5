"""One tile: a dense problem solved by pair steps and block steps in one compiled program."""
