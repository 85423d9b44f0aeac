"""A holdout as a service: one process owns labels, guard and database, and teams query over HTTP.

``radabound serve`` starts it (docs/how-to/serve-a-holdout.md), `service.client.RemoteGuard`
queries it.

=============  ====================================================================
`tokens`       the file of teams and their tokens
`wire`         the format of predictions, for client and service
`reading`      conversion of octets to rows for the guard
`answering`    queries of the guard; calls that wait are committed together
`state`        what the owner and a team may see
`page`         HTML of that
`counts`       metrics for Prometheus
`app`          HTTP: authentication, limits on bodies, JSON
`contract`     the OpenAPI description
`server`       uvicorn
`client`       `RemoteGuard`; needs no extra
=============  ====================================================================
"""
