// node replicas.mjs PACKAGE TOKEN LAG URL…: diptych-rest over nodes that take turns and read from a standby that lags.
// Prints what a page saw: its own writes, what was older than the newest state, and what went back in time.
const [source, token, lag, ...urls] = process.argv.slice(2)
const { connect, withReadTokens } = await import(source)
const sleep = (time) => new Promise((resolve) => setTimeout(resolve, time))
const fetched = globalThis.fetch
const sent = []
let turn = 0
let replay // the token of a client that keeps its first one for ever
globalThis.fetch = (url, options) => {
  const headers = { ...options.headers }
  if (replay !== undefined && headers['read-token']) headers['read-token'] = replay
  sent.push(headers['read-token'])
  const { pathname, search } = new URL(url.url ?? url)
  const target = urls[turn++ % urls.length] + pathname + search
  return fetched(url instanceof Request ? new Request(target, url) : target, { ...options, headers })
}
const page = connect(urls[0], { token: () => token })
const other = connect(urls[0], { token: () => token })
const found = { writes: 0, stale: 0, requests: 0, requested: 0, parallel: 0, older: 0, back: 0, tokens: 0, control: 0, told: 0, untold: 0 }

const mine = await page.create('users', { name: '0', email: 'mine@example.org' })
const theirs = await other.create('users', { name: '0', email: 'theirs@example.org' })
for (let number = 1; number <= 20; number++) {
  await page.update('users', mine.id, { name: String(number) })
  for (let again = 0; again < 2; again++) {
    found.writes += 1
    found.stale += Number((await page.get('users', mine.id)).name) !== number
  }
}
// the same for a client of another make, which has a Request
const carrying = withReadTokens()
const signed = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
for (let number = 1; number <= 5; number++) {
  const url = `${urls[0]}/users/${mine.id}`
  const body = JSON.stringify({ name: `request ${number}` })
  await carrying(new Request(url, { method: 'PATCH', headers: signed, body }))
  found.requests += (await (await carrying(new Request(url, { headers: signed }))).json()).name === `request ${number}`
}
found.requested = sent.slice(-9).filter(Boolean).length

// requests side by side: more tokens than one request may carry
await Promise.all(Array.from({ length: 20 }, (_, n) => page.create('users', { name: 'side', email: `side${n}@example.org` })))
found.parallel = (await page.list('users', { where: { name: 'side' } })).total

// a page that has seen less than the newest state may be answered by the standby, and never goes back from what it has seen
for (let round = 1; round <= 3; round++) {
  await sleep(2 * Number(lag))
  await page.get('users', theirs.id)
  await other.update('users', theirs.id, { name: String(round) })
  let last = 0
  for (const until = Date.now() + 2 * Number(lag); Date.now() < until; await sleep(20)) {
    const now = Number((await page.get('users', theirs.id)).name)
    found.older += now < round
    found.back += now < last
    last = now
  }
}
// who hears of a change can read it
const heard = new Promise((resolve) => page.follow('users', (changes) => changes?.some(({ rowId }) => rowId === theirs.id) && resolve()))
await sleep(500)
await other.update('users', theirs.id, { name: 'told' })
await heard
const answers = await Promise.all(Array.from({ length: 4 }, () => page.get('users', theirs.id)))
found.told = answers.filter(({ name }) => name === 'told').length
found.untold = answers.length - found.told

found.tokens = sent.filter(Boolean).length
// the control: tokens that are not replaced
await sleep(2 * Number(lag))
await page.get('users', mine.id)
await page.get('users', mine.id)
replay = sent.at(-1)
await page.update('users', mine.id, { name: 'new' })
for (let again = 0; again < 4; again++) found.control += (await page.get('users', mine.id)).name !== 'new'
console.log(JSON.stringify(found))
process.exit()
