"""Tools of security: ACLs, roles, delegation tokens."""
