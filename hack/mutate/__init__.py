"""How much of a change in the rules the unit tests notice: `make mutate`.

A mutant is one small change of one statement: mutmut's operators make it, and two of our own that mutmut lacks. Four
hundred statements are drawn by a seed from the modules that do no I/O, one mutant of each. A mutant runs in a fork of a
process that has imported everything foreign, against the unit tests that reach its statement, the fastest first, until
one fails. mutmut's own runner is not used: it passes over decorated functions, and has no draw.
"""
