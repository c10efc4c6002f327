// node schema.mjs < answer.json: builds a schema from the answer to an introspection query, as any client
// would, and prints what GraphQL.js finds wrong with it: [message, …].
import { readFileSync } from 'node:fs'
import { buildClientSchema, validateSchema } from 'graphql'

function faults(answer) {
  try {
    return validateSchema(buildClientSchema(answer.data ?? answer)).map((error) => error.message)
  } catch (error) {
    return [error.message]
  }
}

console.log(JSON.stringify(faults(JSON.parse(readFileSync(0, 'utf8')))))
