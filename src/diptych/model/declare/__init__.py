"""What a model file uses: resource classes, markers, roles, rules, actions and rows. Imports nothing but itself."""
