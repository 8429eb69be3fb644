"""Parts that the adapters of DGL and PyG share; nothing else imports them."""
