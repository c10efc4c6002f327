# Settings of all commands in this folder. A flag or an environment variable (DIPTYCH_PORT=9000) wins over this file.
model = "tasks:model"
database = "sqlite:///tasks.db"
