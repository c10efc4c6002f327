// node rest.mjs PACKAGE URL TOKEN: the stream of diptych-rest through a proxy that breaks connections; and its filters and patches.
import assert from 'node:assert/strict'
import { createServer, request } from 'node:http'
import { done, step } from '../steps.mjs'

const [source, url, token] = process.argv.slice(2)
const { connect, difference, where, Refused } = await import(source)
const asked = []
const open = new Set()
let broken = false
const proxy = createServer((incoming, outgoing) => {
  if (broken) return incoming.socket.destroy()
  asked.push({ path: incoming.url, after: incoming.headers['last-event-id'] })
  open.add(incoming.socket)
  const { method, headers } = incoming
  const onward = request(url + incoming.url, { method, headers }, (response) => {
    outgoing.writeHead(response.statusCode, response.headers)
    response.pipe(outgoing)
  })
  onward.on('error', () => {})
  outgoing.on('close', () => onward.destroy())
  incoming.pipe(onward)
}).listen(0, '127.0.0.1')
await new Promise((resolve) => proxy.on('listening', resolve))

const direct = connect(url, { token: () => token })
const errors = []
const rest = connect(`http://127.0.0.1:${proxy.address().port}/`, {
  token: async () => token,
  onStreamError: (error) => errors.push(error.status),
})
const until = async (test) => {
  for (let waited = 0; !test(); waited += 20) {
    assert(waited < 60_000, `it did not happen: ${test}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
const add = (name) => direct.create('users', { name, email: `${name}@example.org` })
const streams = () => asked.filter(({ path }) => path.includes('/changes'))

await step('resume', async () => {
  const made = []
  const told = [[], []]
  await rest.list('users', { first: 1 })
  made.push((await add('early')).id) // between the read and the stream
  const stops = told.map((ids) => rest.follow('users', (changes) => ids.push(...changes.map(({ rowId }) => rowId))))
  await until(() => told[0].length === 1)
  for (const round of ['a', 'b']) {
    broken = true
    for (const socket of open) socket.destroy()
    open.clear()
    made.push((await add(`${round}1`)).id, (await add(`${round}2`)).id)
    broken = false
    await until(() => told[0].length === made.length)
  }
  assert.deepEqual(told, [made, made])
  assert.equal(streams().length, 3, 'two listeners share a stream')
  assert(streams().every(({ after }) => after))
  stops.forEach((stop) => stop())
  await add('late')
  await new Promise((resolve) => setTimeout(resolve, 200))
  assert.deepEqual(told[0], made)
})

await step('gap', async () => {
  let gaps = 0
  const lost = connect(url, { token: () => token, onStreamError: (error) => errors.push(error.status) })
  const fetched = globalThis.fetch
  const sent = []
  globalThis.fetch = (to, options) => {
    const after = options.headers['last-event-id']
    sent.push(after)
    return fetched(to, sent.length === 1 ? { ...options, headers: { ...options.headers, 'last-event-id': 'A'.repeat(64) } } : options)
  }
  const stop = lost.follow('users', (changes) => (gaps += changes === null))
  await until(() => sent.length === 2)
  stop()
  globalThis.fetch = fetched
  assert.deepEqual([gaps, sent[1], errors], [1, undefined, [410]])
})

await step('lists', async () => {
  const all = await direct.list('posts', { first: 115, sort: 'title' })
  assert.equal(all.rows.length, 115)
  assert.equal(new Set(all.rows.map(({ id }) => id)).size, 115)
  const ids = all.rows.map(({ id }) => id)
  assert.equal((await direct.many('posts', ids)).length, 115)
  assert.deepEqual(await direct.many('posts', []), [])
  const author = all.rows[0].authorId
  const own = await direct.list('posts', { first: 100, where: { author: { id: author }, title: { contains: 'a' } } })
  assert(own.total > 0 && own.rows.every((row) => row.authorId === author && row.title.includes('a')))
})

await step('writes', async () => {
  const rows = await direct.createMany('users', Array.from({ length: 25 }, (_, n) => ({ name: 'many', email: `m${n}@example.org` })))
  const ids = rows.map(({ id }) => id)
  assert.deepEqual((await direct.each('PATCH', 'users', ids, { name: 'all' })).map(({ name }) => name), rows.map(() => 'all'))
  await assert.rejects(direct.update('users', ids[0], { name: 'old' }, { version: 1 }), (error) => error instanceof Refused && error.status === 412)
  await assert.rejects(direct.remove('users', ids[0], { version: 1 }), { status: 412 })
  await assert.rejects(direct.each('PATCH', 'users', ids.slice(0, 2), { name: '' }), (error) => 'name' in error.fields)
  await assert.rejects(connect(url).remove('users', ids[0]), { status: 401 })
  await direct.each('DELETE', 'users', ids)
  assert.equal((await direct.list('users', { where: { name: 'all' } })).total, 0)
})

await step('values', () => {
  assert.deepEqual(where({ a: 1, b: [1], c: null, d: undefined, e: { f: { gte: 2 }, g: 'x' }, or: [{ a: 1 }, { not: { a: 2 } }] }), {
    a: { eq: 1 },
    b: { in: [1] },
    c: { isNull: true },
    e: { f: { gte: 2 }, g: { eq: 'x' } },
    or: [{ a: { eq: 1 } }, { not: { a: { eq: 2 } } }],
  })
  const before = { a: 1, b: [1], c: { d: 1, e: 2 }, f: null, g: 1 }
  assert.deepEqual(difference(before, { a: 1, b: [2], c: { d: 3 }, f: null, g: null, h: undefined }), { b: [2], c: { d: 3, e: null }, g: null })
  const { message, fields } = new Refused(422, { detail: 'No.', errors: [{ pointer: '/a/b~1c', message: 'bad' }] })
  assert.deepEqual([message, fields], ['No. (a.b/c: bad)', { 'a.b/c': 'bad' }])
})
done()
