"""`lind sandboxd`: the daemon in the pods of the Kubernetes project agent-sandbox, with many sandboxes in one pod."""
