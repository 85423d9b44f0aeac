"""A holdout as a service: one process owns labels, guard and database, and teams ask over HTTP.

``radabound serve`` starts it (docs/serve.md), `service.client.RemoteGuard` asks it.

=============  ====================================================================
`tokens`       who may ask: the file of names and tokens
`wire`         how predictions travel; the client has it too, and needs no extra
`reading`      from octets to what the guard takes
`answering`    the one thread that asks the guard, and commits calls together
`app`          HTTP: who it is, how much of a body, JSON
`page`         what is left and what was answered, as HTML
`contract`     all of that in OpenAPI's words
`server`       uvicorn, and slow clients
=============  ====================================================================
"""
