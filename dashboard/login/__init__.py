"""Who is let in: OpenID Connect, a trusted proxy, API tokens, and the gate in front of every route."""
