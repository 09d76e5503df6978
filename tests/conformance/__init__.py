"""Every method on every kind of system with every option of ``solve``: what each of these cells must satisfy.

``kinds.py``
    Kinds of systems.  A new one is a function there.
``options.py``
    Options of ``solve``, and what must hold with them.  A new one is a function there.
``methods.py``
    Methods, and what each promises.  Registered methods enter by themselves.
``known.py``
    What methods cannot do, and defects that are known: the only list of exceptions.
``worker.py``
    Runs cells in a process of its own and reports each; ``watching.py`` is the other end, which notices
    crashes and hangs.

A cell passes if the run succeeds and everything holds that its option asserts.  One that is refused, or stops
on the way, must be listed in ``known.py``; a refusal names an argument and says what to do.

One cell by hand, with its traceback:

    PYTHONPATH=src:tests python -m conformance.worker pendulum bdf "dense output"
"""
