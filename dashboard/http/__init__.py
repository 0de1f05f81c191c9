"""What every route beside the pages needs: one shape of errors, a limit per address."""
