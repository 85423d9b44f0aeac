"""A holdout as a service: one process owns labels, guard and database, and teams query over HTTP.

``radabound serve`` starts it (docs/how-to/serve-a-holdout.md), `service.client.RemoteGuard`
queries it.

=============  ====================================================================
`tokens`       the file of teams: tokens, and limits
`parts`        the part of a declared space that is a team's own
`wire`         the format of predictions, for client and service
`reading`      conversion of octets to rows for the guard
`limits`       what one team, and all together, may have
`turns`        whose work is next; long work leaves the event loop
`answering`    queries of the guard; calls that wait are committed together
`replies`      errors as JSON
`state`        what the owner and a team may see, as JSON
`reports`      reports of a declared search, read in steps
`page`         the page: what it shows, and its text by `templates`
`picture`      where its scores are drawn
`counts`       metrics for Prometheus
`app`          HTTP: authentication, limits on bodies, JSON
`contract`     the OpenAPI description
`server`       uvicorn
`client`       `RemoteGuard`; needs no extra
=============  ====================================================================
"""
