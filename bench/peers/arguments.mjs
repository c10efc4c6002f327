// The command line that all servers of the bench take: --database URL --port N --viewer ID.
import { parseArgs } from 'node:util'

const text = { type: 'string' }
const { values } = parseArgs({ options: { database: text, port: text, viewer: text } })

export const database = values.database
export const port = Number(values.port)
export const viewer = values.viewer
export const POOL = 8

// postgresql://USER:@/NAME?host=FOLDER, as the drivers of Node take a socket.
export function socket (url) {
  const parsed = new URL(url.replace('@/', '@localhost/'))
  return {
    host: parsed.searchParams.get('host'),
    user: parsed.username,
    database: parsed.pathname.slice(1),
    port: 5432
  }
}
