"""The look of all pages: colours, type and spacing, from one style sheet.

`tokens.css` has the design tokens of the light and the dark theme, `page.css` the elements of pages, and `sheet` makes
one sheet of both. The console, the pages of `serve`, `diptych rules --html` and the documentation use it. It imports
nothing of the other packages.
"""
