"""Trees over the words of a sentence as users pass them: brackets, heads, and what is known of either."""
