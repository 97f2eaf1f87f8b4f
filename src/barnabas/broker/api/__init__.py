"""What a handler is: its declaration, the request's context, responses that come later, rights."""
