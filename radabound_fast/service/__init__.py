"""A holdout as a service: one process owns labels, guard and database, and teams query over HTTP.

``radabound serve`` starts it (docs/how-to/serve-a-holdout.md), `service.client.RemoteGuard`
queries it.  A call goes from `server` (uvicorn) to `app` (HTTP), waits in `turns`, is read by
`wire` and `reading`, and answered and committed by `answering`; docs/reference/http.md says what
is promised.
"""
