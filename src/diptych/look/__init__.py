"""The look of all pages: colours, type and spacing, from one style sheet."""
