"""Topics that brokers at different sites share over the overlay."""
