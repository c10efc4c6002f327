// The statements of the mercurius peer on SQLite, by better-sqlite3: synchronous and prepared. Its documentation says that many
// small statements cost no round trip, so lists of many parents are one statement for each parent.
import Database from 'better-sqlite3'

const PRAGMAS = ['journal_mode=WAL', 'synchronous=FULL', 'mmap_size=268435456', 'cache_size=-65536', 'foreign_keys=ON']

export function open (url, viewer) {
  const db = new Database(url.replace('sqlite:///', ''))
  for (const pragma of PRAGMAS) db.pragma(pragma)
  const user = db.prepare('SELECT id, name, CASE WHEN id = ? THEN email END AS email FROM users WHERE id = ?')
  const fullUser = db.prepare(
    `SELECT id, version, created_at AS createdAt, updated_at AS updatedAt, name, CASE WHEN id = ? THEN email END AS email
     FROM users WHERE id = ?`)
  const posts = db.prepare(
    'SELECT id, title, author_id FROM posts WHERE id > ? AND (published OR author_id = ?) ORDER BY id LIMIT ?')
  const postsOf = db.prepare(
    `SELECT author_id AS parent, id, title FROM posts WHERE author_id = ? AND (published OR author_id = ?)
     ORDER BY id LIMIT ?`)
  const commentsOf = db.prepare(
    'SELECT post_id AS parent, body, author_id FROM comments WHERE post_id = ? ORDER BY id LIMIT ?')
  const orders = db.prepare(
    `SELECT id, version, created_at AS createdAt, updated_at AS updatedAt, customer_id AS customerId, status,
       format('%d.%02d', total / 100, total % 100) AS total, currency, note, internal_note AS internalNote
     FROM orders WHERE id > ? ORDER BY id LIMIT ?`)
  const insert = db.prepare(
    `INSERT INTO orders (id, version, created_at, updated_at, customer_id, status, total, currency, note)
     VALUES (?, 1, ?, ?, ?, 'pending', ?, ?, ?)
     RETURNING id, status, format('%d.%02d', total / 100, total % 100) AS total, currency, customer_id`)
  return {
    users: keys => keys.map(key => user.get(viewer, key)),
    user: id => user.get(viewer, id),
    fullUser: id => fullUser.get(viewer, id),
    posts: (first, after) => posts.all(after ?? '', viewer, first),
    postsOf: (keys, first) => keys.flatMap(key => postsOf.all(key, viewer, first)),
    commentsOf: (keys, first) => keys.flatMap(key => commentsOf.all(key, first)),
    orders: (first, after) => orders.all(after ?? '', first),
    create: (id, { customerId, total, currency, note }) => {
      const at = new Date().toISOString().replace('Z', '000Z')
      return insert.get(id, at, at, customerId, Number(total.replace('.', '')), currency, note)
    }
  }
}
