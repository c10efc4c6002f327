{
  "format": 1,
  "migration": "0001_first",
  "tables": {
    "people": {
      "columns": {
        "created_at": {
          "type": "DateTime"
        },
        "email": {
          "type": "String"
        },
        "id": {
          "type": "ID"
        },
        "name": {
          "type": "String"
        },
        "updated_at": {
          "type": "DateTime"
        },
        "version": {
          "type": "Int"
        }
      },
      "keys": [
        {
          "columns": [
            "email"
          ],
          "inline": true,
          "unique": true
        }
      ]
    },
    "tasks": {
      "columns": {
        "created_at": {
          "type": "DateTime"
        },
        "done": {
          "default": false,
          "type": "Boolean"
        },
        "id": {
          "type": "ID"
        },
        "owner_id": {
          "on_delete": "cascade",
          "target": "people",
          "type": "ID"
        },
        "shared": {
          "default": false,
          "type": "Boolean"
        },
        "title": {
          "type": "String"
        },
        "updated_at": {
          "type": "DateTime"
        },
        "version": {
          "type": "Int"
        }
      },
      "keys": [
        {
          "columns": [
            "owner_id"
          ]
        }
      ]
    }
  }
}
