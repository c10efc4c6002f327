// node inspector.mjs < [[old, new], …]: what graphql-inspector says of the changes between two schemas, as SDL:
// [[{level, path, message}, …], …].
import { readFileSync } from 'node:fs'
import { diff } from '@graphql-inspector/core'
import { buildSchema } from 'graphql'

const pairs = JSON.parse(readFileSync(0, 'utf8'))
const found = []
for (const [old, now] of pairs) {
  const changes = await diff(buildSchema(old), buildSchema(now))
  found.push(changes.map(({ criticality, path, message }) => ({ level: criticality.level, path, message })))
}
console.log(JSON.stringify(found))
