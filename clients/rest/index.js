/**
 * The REST interface of a Diptych service for pages in a browser: requests with a token, lists, writes and live changes.
 * The providers for react-admin and refine are made of it.
 *
 *     const rest = connect('https://api.example.org', { token: () => session.accessToken })
 *     const { rows, total } = await rest.list('posts', { first: 10, sort: '-createdAt', where: { published: true } })
 *     const stop = rest.follow('posts', (changes) => …)
 */

/** @typedef {Record<string, any>} Row */
/** @typedef {{ cursor: string, kind: 'CREATED' | 'UPDATED' | 'LEFT' | 'DELETED', rowId: string | number, at: string }} Change */
/** @typedef {(changes: Change[] | null) => void} Listener Called with changes, or with null if some may have been missed: read anew. */
/** @typedef {{ first?: number, offset?: number, sort?: string, where?: Row, fields?: string, signal?: AbortSignal }} ListOptions */
/** @typedef {{ method?: string, query?: Row, body?: unknown, headers?: Record<string, string>, signal?: AbortSignal }} RequestOptions */
/** @typedef {{ token?: () => string | null | undefined | Promise<string | null | undefined>, onStreamError?: (error: unknown) => void }} Options */
/** @typedef {ReturnType<typeof connect>} Connection */

const MAX_PAGE = 100
const MAX_BATCH = 20
const MAX_TOKENS = 16
/** As OPERATORS in src/diptych/model/operators.py; tests/unit/model/test_operators.py compares them. */
const OPERATORS = new Set(
  'eq ne lt lte gt gte in contains startsWith endsWith ieq icontains istartsWith iendsWith has hasAny hasAll isEmpty isNull'.split(' '),
)
export const CONFLICT = 'Someone else has changed it meanwhile. Reload it, and make your change again.'

/** A request that was refused: its status and code, and the messages of invalid fields by their names. */
export class Refused extends Error {
  /** @param {number} status @param {Row} problem */
  constructor(status, problem) {
    const named = (problem.errors ?? []).map((/** @type {Row} */ { pointer, message }) => [name(pointer ?? ''), message])
    const detail = status === 412 ? CONFLICT : (problem.detail ?? `The service answered ${status}.`)
    const faults = named.map((/** @type {string[]} */ [field, message]) => `${field}: ${message}`).join('; ')
    super(faults ? `${detail} (${faults})` : detail)
    this.name = 'Refused'
    /** A DELETE without permission is 401, also of a viewer who is signed in: 403 keeps pages from signing out. */
    this.status = status === 401 && problem.code === 'FORBIDDEN' ? 403 : status
    /** @type {string | undefined} */
    this.code = problem.code
    /** @type {Record<string, string>} */
    this.fields = Object.fromEntries(named)
  }
}

/** `/address/street`, and `/requests/0/body/address/street` of a batch → `address.street` @param {string} pointer */
function name(pointer) {
  return pointer.replace(/^\/requests\/\d+\/body(?=\/)/, '').slice(1).replaceAll('/', '.').replaceAll('~1', '/').replaceAll('~0', '~')
}

/**
 * A filter of the service from one in which a value means equality, and a list `in`.
 * `{ title: { contains: 'x' }, author: { name: 'Ann' } }` → `{ title: { contains: 'x' }, author: { name: { eq: 'Ann' } } }`
 * @param {Row} filter @returns {Row}
 */
export function where(filter) {
  const parts = Object.entries(filter).filter(([, value]) => value !== undefined)
  return Object.fromEntries(parts.map(([key, value]) => [key, condition(key, value)]))
}

/** @param {string} key @param {any} value @returns {any} */
function condition(key, value) {
  if (OPERATORS.has(key)) return value
  if ((key === 'and' || key === 'or') && Array.isArray(value)) return value.map(where)
  if (value === null) return { isNull: true }
  if (Array.isArray(value)) return { in: value }
  return typeof value === 'object' ? where(value) : { eq: value }
}

/**
 * The JSON merge patch that makes one value of another: only what differs; null for what is gone.
 * @param {Row} before @param {Row} after @returns {Row}
 */
export function difference(before, after) {
  const same = (/** @type {unknown} */ a, /** @type {unknown} */ b) => JSON.stringify(a) === JSON.stringify(b)
  const plain = (/** @type {unknown} */ value) => typeof value === 'object' && value !== null && !Array.isArray(value)
  const changed = Object.keys(after).filter((key) => after[key] !== undefined && !same(before[key], after[key]))
  return Object.fromEntries(
    changed.map((key) => {
      if (!plain(before[key]) || !plain(after[key])) return [key, after[key]]
      const gone = Object.keys(before[key]).filter((inner) => !(inner in after[key])).map((inner) => [inner, null])
      return [key, { ...difference(before[key], after[key]), ...Object.fromEntries(gone) }]
    }),
  )
}

/**
 * A `fetch` that carries read tokens: a page reads what it has written or seen, from any node and its replicas. Also for other
 * clients that take a `fetch`: openapi-fetch, hey-api, Apollo, urql. Streams are passed on as they are; `replace` notes a cursor of
 * one, and the earlier one that it covers.
 *
 * A request without tokens sees everything. So none are sent after a response without one, or a write without a response, until
 * a request that began later has brought a token.
 * @param {typeof fetch} send
 */
export function withReadTokens(send = (input, init) => fetch(input, init)) {
  /** @type {Set<string>} */
  const tokens = new Set()
  let uncovered = 0 // how often something was done that no token covers
  let covered = 0 // how many of those a token covers by now

  /** @param {RequestInfo | URL} input @param {RequestInit} [init] */
  async function carrying(input, init) {
    const request = input instanceof Request ? input : undefined
    const headers = new Headers(init?.headers ?? request?.headers)
    if (headers.get('accept')?.includes('text/event-stream')) return send(input, init)
    const held = [...tokens]
    const begun = uncovered
    const seesAll = covered < uncovered || held.length === 0 || held.length > MAX_TOKENS
    headers.append('prefer', 'read-token')
    if (!seesAll) headers.set('read-token', held.join(', '))
    const response = await send(input, { ...init, headers: Object.fromEntries(headers) }).catch((error) => {
      if ((init?.method ?? request?.method ?? 'GET') !== 'GET') uncovered += 1 // it may have been done
      throw error
    })
    const token = response.headers.get('read-token') // it covers what was sent, and what was seen
    for (const old of held) tokens.delete(old)
    if (token === null) uncovered += 1
    else {
      tokens.add(token)
      if (seesAll) covered = Math.max(covered, begun)
    }
    return response
  }

  /** @param {string | undefined} old @param {string} cursor */
  function replace(old, cursor) {
    if (old) tokens.delete(old)
    tokens.add(cursor)
  }
  return Object.assign(carrying, { replace })
}

/** @param {string} url where the service is @param {Options} options */
export function connect(url, { token, onStreamError = console.warn } = {}) {
  const base = url.replace(/\/$/, '')
  /** @type {string | undefined} The position of the newest read in the feed of changes: streams start there. */
  let newest
  const carrying = withReadTokens()
  /** @type {Map<string, { listeners: Set<Listener>, controller: AbortController }>} */
  const streams = new Map()

  /** @param {string} path @param {RequestOptions} options */
  async function send(path, { method = 'GET', query = {}, body, headers = {}, signal } = {}) {
    const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null)
    const search = new URLSearchParams(given.map(([key, value]) => [key, String(value)])).toString()
    const bearer = await token?.()
    const response = await carrying(`${base}${path}${search && `?${search}`}`, {
      method,
      headers: {
        ...(bearer ? { authorization: `Bearer ${bearer}` } : {}),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
    })
    if (!response.ok) throw new Refused(response.status, await response.json().catch(() => ({})))
    return response
  }

  /** @param {string} path @param {RequestOptions} options @returns {Promise<any>} */
  async function read(path, options) {
    const response = await send(path, { ...options, headers: { prefer: 'change-cursor' } })
    newest = response.headers.get('change-cursor') ?? newest
    return response.json()
  }

  /** @param {string} resource @param {ListOptions} options */
  async function list(resource, { first = 20, offset, sort, where: filter = {}, fields, signal } = {}) {
    const tree = where(filter)
    const fixed = { sort, fields, where: Object.keys(tree).length ? JSON.stringify(tree) : undefined }
    const start = { ...fixed, first: Math.min(first, MAX_PAGE), offset: offset || undefined, count: 'exact' }
    const { data: rows, page } = await read(`/${resource}`, { query: start, signal })
    for (let after = page.next; after && rows.length < first; ) {
      const query = { ...fixed, first: Math.min(first - rows.length, MAX_PAGE), after }
      const more = await read(`/${resource}`, { query, signal })
      rows.push(...more.data)
      after = more.page.next
    }
    return { rows: /** @type {Row[]} */ (rows), total: /** @type {number} */ (page.total) }
  }

  /** @param {string} resource @param {string | number} id */
  const place = (resource, id) => `/${resource}/${encodeURIComponent(id)}`
  /** @param {number | undefined} version @returns {Record<string, string>} */
  const locked = (version) => (version === undefined ? {} : { 'if-match': `"${version}."` })

  /** @param {string} resource @param {string | number} id @param {{ fields?: string, signal?: AbortSignal }} options @returns {Promise<Row>} */
  const get = (resource, id, { fields, signal } = {}) => read(place(resource, id), { query: { fields }, signal })

  /** @param {string} resource @param {(string | number)[]} ids @param {{ fields?: string, signal?: AbortSignal }} options */
  async function many(resource, ids, options = {}) {
    const { rows } = await list(resource, { ...options, first: ids.length || 1, where: { id: [...new Set(ids)] } })
    return rows
  }

  /** @param {string} resource @param {Row} row @param {{ fields?: string }} options @returns {Promise<Row>} */
  async function create(resource, row, { fields } = {}) {
    return (await send(`/${resource}`, { method: 'POST', query: { fields }, body: row })).json()
  }

  /** @param {string} resource @param {Row[]} rows @returns {Promise<Row[]>} */
  async function createMany(resource, rows) {
    return (await send(`/${resource}/batch`, { method: 'POST', body: rows })).json()
  }

  /**
   * Write the fields of a patch, if the row still has the version.
   * @param {string} resource @param {string | number} id @param {Row} patch
   * @param {{ version?: number, fields?: string }} options @returns {Promise<Row>}
   */
  async function update(resource, id, patch, { version, fields } = {}) {
    const options = { method: 'PATCH', query: { fields }, body: patch, headers: locked(version) }
    return (await send(place(resource, id), options)).json()
  }

  /** @param {string} resource @param {string | number} id @param {{ version?: number }} options */
  async function remove(resource, id, { version } = {}) {
    await send(place(resource, id), { method: 'DELETE', headers: locked(version) })
  }

  /**
   * The same write of several rows, whatever their versions: up to 20 in one transaction.
   * @param {string} method @param {string} resource @param {(string | number)[]} ids @param {Row} [body] @returns {Promise<Row[]>}
   */
  async function each(method, resource, ids, body) {
    const answers = []
    for (let begin = 0; begin < ids.length; begin += MAX_BATCH) {
      const requests = ids.slice(begin, begin + MAX_BATCH).map((id) => ({ method, url: place(resource, id), body }))
      const { responses } = await (await send('/batch', { method: 'POST', body: { requests } })).json()
      answers.push(...responses.map((/** @type {Row} */ answer) => answer.body))
    }
    return answers
  }

  /**
   * Listen to the changes of a resource. All listeners of one share one stream: a browser has six connections to a host.
   * @param {string} resource @param {Listener} listener @returns {() => void} what ends it
   */
  function follow(resource, listener) {
    const stream = streams.get(resource) ?? { listeners: new Set(), controller: new AbortController() }
    const own = /** @type {Listener} */ ((changes) => listener(changes))
    stream.listeners.add(own)
    if (!streams.has(resource)) {
      streams.set(resource, stream)
      void keep(resource, stream.listeners, stream.controller.signal)
    }
    return () => {
      if (stream.listeners.delete(own) && stream.listeners.size === 0) {
        stream.controller.abort()
        streams.delete(resource)
      }
    }
  }

  /** Keep a stream open, and resume it where it broke off. @param {string} resource @param {Set<Listener>} listeners @param {AbortSignal} signal */
  async function keep(resource, listeners, signal) {
    for (let waited = 0; newest === undefined && waited < 1000; waited += 50) await sleep(50) // the read beside it
    let cursor = newest
    let pause = 500
    while (!signal.aborted) {
      try {
        const headers = { accept: 'text/event-stream', ...(cursor ? { 'last-event-id': cursor } : {}) }
        const response = await send(`/${resource}/changes`, { query: { fields: 'id' }, headers, signal })
        for await (const { id, changes, gap } of pieces(/** @type {ReadableStream<Uint8Array>} */ (response.body))) {
          if (changes.length && id) carrying.replace(cursor, id) // who hears of a change can read it
          cursor = gap ? undefined : (id ?? cursor)
          pause = 500
          if (gap || changes.length) for (const listener of listeners) listener(gap ? null : changes)
        }
      } catch (error) {
        if (signal.aborted) return
        if (error instanceof Refused) {
          onStreamError(error)
          if (error.status === 410) {
            cursor = undefined
            for (const listener of listeners) listener(null)
          }
        }
      }
      await sleep((pause = Math.min(pause * 2, 60_000)))
    }
  }

  return { url: base, send, list, get, many, create, createMany, update, remove, each, follow }
}

/** @param {number} time */
const sleep = (time) => new Promise((resolve) => setTimeout(resolve, time))

/** What each piece of an event stream contains: the last id, and all its changes. @param {ReadableStream<Uint8Array>} body */
async function* pieces(body) {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  try {
    for (let rest = '', piece = await reader.read(); !piece.done; piece = await reader.read()) {
      const blocks = (rest + decoder.decode(piece.value, { stream: true })).split('\n\n')
      rest = blocks.pop() ?? ''
      /** @type {{ id: string | undefined, changes: Change[], gap: boolean }} */
      const contents = { id: undefined, changes: [], gap: false }
      for (const block of blocks) {
        const lines = new Map(block.split('\n').map((line) => /** @type {[string, string]} */ (line.split(/: ?(.*)/s, 2))))
        contents.id = lines.get('id') ?? contents.id
        const data = lines.get('data')
        if (data && lines.get('event') === 'end') contents.gap = JSON.parse(data).code === 'RESUME_GAP'
        else if (data) contents.changes.push(JSON.parse(data))
      }
      yield contents
    }
  } finally {
    await reader.cancel().catch(() => {})
  }
}
