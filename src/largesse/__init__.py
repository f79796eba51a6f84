"""Largesse, a self-hosted gift ordering service.

A command of `cli` reads the settings and hands them to `installation`, which opens the database and the vault; what serves
and delivers is built by `main`, the only wiring. `serving` runs the application under uvicorn, `connections` watches the callers' connections,
`worker` says which kind of due job goes to which function. `demo` makes the world that `largesse demo` shows; `world`
loads an installation from a file; `checkup` and `verify` look at a configuration and at what is stored; `resealing` brings all that is sealed
under a new master key, `privacy` tells and erases what is held about a recipient.

Below them, from the outside in: `web` (what is reached over HTTP), `delivery` (webhooks and mail that go out), `events`, `drafts` (sends
that people put together), `reports` (orders as people list, search and add them up), `orders`,
`fulfilment` (vouchers and parcels), `lines` (the codes of an order), `funding` (accounts and ledger), `catalogue`, `templates`,
`people` (who signs in), `identity` (who calls), `audit` (who did what), `chains` (marks that only the master key makes), `sealing` (under which
master keys), `database`, and `base`, which all stand on. Imports go downwards only.

docs/architecture.md follows one order through these rooms; the docstring of each room's `__init__` is the guide to its files.
"""

try:
    from largesse._version import __version__
except ImportError:  # run from a checkout that was never installed
    __version__ = "0+unknown"

__all__ = ["__version__"]
