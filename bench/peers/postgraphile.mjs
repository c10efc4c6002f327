// PostGraphile 5 on PostgreSQL, by Grafserv on Node's own HTTP server: the tables of the bench as views of a schema of its own
// (`postgraphile.sql`), which hold the rules of the model, for a constant viewer.
//
//     node postgraphile.mjs --database postgresql://… --port 8004 --viewer <user id>
//
// One process, in production mode, lists instead of connections, no IDE, no explain, no watching.
import { createServer } from 'node:http'
import { readFile } from 'node:fs/promises'
import { grafserv } from 'postgraphile/grafserv/node'
import { postgraphile } from 'postgraphile'
import { makePgService } from 'postgraphile/adaptors/pg'
import { PostGraphileAmberPreset } from 'postgraphile/presets/amber'
import { addPgTableCondition } from 'postgraphile/utils'
import { TYPES } from 'postgraphile/@dataplan/pg'
import pg from 'pg'
import { POOL, database, port, socket, viewer } from './arguments.mjs'

const connection = { ...socket(database), options: '-c jit=off' }

// Views, remade at each start.
const client = new pg.Client(connection)
await client.connect()
const views = await readFile(new URL('./postgraphile.sql', import.meta.url), 'utf8')
await client.query(views.replaceAll(':viewer', pg.escapeLiteral(viewer)))
await client.end()

const AfterId = addPgTableCondition(
  { schemaName: 'postgraphile', tableName: 'posts' },
  'after',
  build => ({ type: build.getInputTypeByName('UUID') }),
  (value, { sql, sqlTableAlias, sqlValueWithCodec }) =>
    value == null ? null : sql`${sqlTableAlias}.id > ${sqlValueWithCodec(value, TYPES.uuid)}`
)

const preset = {
  extends: [PostGraphileAmberPreset],
  plugins: [AfterId],
  pgServices: [makePgService({ pool: new pg.Pool({ ...connection, max: POOL }), schemas: ['postgraphile'] })],
  schema: { defaultBehavior: '+list -connection', dontSwallowErrors: true },
  grafast: { explain: false },
  grafserv: { graphiql: false, watch: false, websockets: false }
}

const server = createServer()
await grafserv({ preset, ...await serverParts() }).addTo(server)
server.listen(port, '127.0.0.1')

async function serverParts () {
  const instance = postgraphile(preset)
  const { schema, resolvedPreset } = await instance.getSchemaResult()
  if (process.env.PRINT_SCHEMA) {
    const { printSchema } = await import('postgraphile/graphql')
    console.log(printSchema(schema))
  }
  return { schema, preset: resolvedPreset }
}
