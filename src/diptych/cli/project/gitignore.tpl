# databases hold data and the keys that sign tokens
*.db
*.db-*

.venv/
__pycache__/
.mypy_cache/
.pytest_cache/
