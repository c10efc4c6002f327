// The statements of the mercurius peer on PostgreSQL, by postgres.js: prepared and pipelined, lists of many parents by one
// LATERAL join.
import postgres from 'postgres'
import { POOL, socket } from './arguments.mjs'

const moment = column => `to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`
const MOMENTS = `${moment('created_at')} AS "createdAt", ${moment('updated_at')} AS "updatedAt"`

export function open (url, viewer) {
  const { host, port, ...rest } = socket(url)
  const sql = postgres({ ...rest, path: `${host}/.s.PGSQL.${port}`, max: POOL, connection: { jit: 'off' } })
  const run = (text, values) => sql.unsafe(text, values, { prepare: true })
  return {
    users: keys => run(
      'SELECT id, name, CASE WHEN id = $2 THEN email END AS email FROM users WHERE id = ANY($1::uuid[])', [keys, viewer]),
    user: async id => (await run(
      'SELECT id, name, CASE WHEN id = $2 THEN email END AS email FROM users WHERE id = $1', [id, viewer]))[0],
    fullUser: async id => (await run(
      `SELECT id, version, ${MOMENTS}, name, CASE WHEN id = $2 THEN email END AS email FROM users WHERE id = $1`,
      [id, viewer]))[0],
    posts: (first, after) => run(
      `SELECT id, title, author_id FROM posts WHERE id > $1 AND (published OR author_id = $3) ORDER BY id LIMIT $2`,
      [after ?? '00000000-0000-0000-0000-000000000000', first, viewer]),
    postsOf: (keys, first) => run(
      `SELECT k.id AS parent, p.id, p.title FROM unnest($1::uuid[]) AS k (id) CROSS JOIN LATERAL (
         SELECT id, title FROM posts WHERE author_id = k.id AND (published OR author_id = $3) ORDER BY id LIMIT $2
       ) p`, [keys, first, viewer]),
    commentsOf: (keys, first) => run(
      `SELECT k.id AS parent, c.body, c.author_id FROM unnest($1::uuid[]) AS k (id) CROSS JOIN LATERAL (
         SELECT body, author_id FROM comments WHERE post_id = k.id ORDER BY id LIMIT $2
       ) c`, [keys, first]),
    orders: (first, after) => run(
      `SELECT id, version, ${MOMENTS}, customer_id AS "customerId", status, total, currency, note,
         internal_note AS "internalNote" FROM orders WHERE id > $1 ORDER BY id LIMIT $2`,
      [after ?? '00000000-0000-0000-0000-000000000000', first]),
    create: async (id, order) => (await run(
      `INSERT INTO orders (id, version, created_at, updated_at, customer_id, status, total, currency, note)
       VALUES ($1, 1, now(), now(), $2, 'pending', $3, $4, $5) RETURNING id, status, total, currency, customer_id`,
      [id, order.customerId, order.total, order.currency, order.note]))[0]
  }
}
