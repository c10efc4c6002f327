/** Requests to the service: the API itself and `/console/api/…`, with the token of whoever is signed in.
 *
 *     const answer = await call('GET', '/orders?first=3')
 *     answer.status, answer.json, answer.ms
 */
import { session } from './session'

const metaContent = (name: string) => document.querySelector<HTMLMetaElement>(`meta[name=${name}]`)?.content ?? ''

export const prefix = metaContent('prefix').startsWith('__') ? '' : metaContent('prefix')
export const nonce = metaContent('csp-nonce')

export interface Answer {
  status: number
  headers: [string, string][]
  text: string
  json: any
  ms: number
  bytes: number
}

export interface Extra {
  body?: unknown
  headers?: Record<string, string>
  /** As oneself, whomever one views as. */
  own?: boolean
  /** Text that is sent as it is. */
  raw?: string
  signal?: AbortSignal
}

export class Failure extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly problem: any = null,
  ) {
    super(message)
  }
}

export const header = (answer: Answer, name: string) => answer.headers.find(([n]) => n === name)?.[1] ?? null

function prepare(extra: Extra): RequestInit {
  const headers: Record<string, string> = { accept: 'application/json', ...extra.headers }
  const token = extra.own ? session.ownToken() : session.token()
  if (token && !headers['authorization']) headers['authorization'] = `Bearer ${token}`
  let body = extra.raw
  if (extra.body !== undefined) {
    headers['content-type'] ??= 'application/json'
    body = JSON.stringify(extra.body)
  }
  return {
    headers,
    body: body ?? null,
    signal: extra.signal ?? null,
    credentials: 'same-origin',
    redirect: 'error',
    cache: 'no-store',
  }
}

/** Any response, whatever its status. Only a service that cannot be reached is an error. */
export async function call(method: string, path: string, extra: Extra = {}): Promise<Answer> {
  await session.fresh()
  const started = performance.now()
  let response: Response
  try {
    response = await fetch(prefix + path, { method, ...prepare(extra) })
  } catch (error) {
    if (extra.signal?.aborted) throw error
    throw new Failure(0, 'The service cannot be reached. Is it still running?')
  }
  const text = await response.text()
  const ms = performance.now() - started
  let json: unknown = null
  if (/json/.test(response.headers.get('content-type') ?? '') && text) {
    try {
      json = JSON.parse(text)
    } catch {
      json = null
    }
  }
  return { status: response.status, headers: [...response.headers], text, json, ms, bytes: new Blob([text]).size }
}

/** Seconds that a read waits by itself when it comes too soon: a budget of the service is full again after ten. */
const LONGEST_WAIT = 10

/** The JSON of a response, or a Failure with what the service says. A read that comes too soon is sent once more. */
export async function ask<T>(method: string, path: string, extra: Extra = {}): Promise<T> {
  let answer = await call(method, path, extra)
  const seconds = Number(header(answer, 'retry-after') ?? Infinity)
  if (answer.status === 429 && method === 'GET' && seconds <= LONGEST_WAIT) {
    await new Promise((resolve) => setTimeout(resolve, seconds * 1000))
    answer = await call(method, path, extra)
  }
  if (answer.status >= 400) throw failure(answer)
  return answer.json as T
}

export function failure(answer: Answer): Failure {
  const problem = answer.json
  const first = problem?.errors?.[0]
  const detail = problem?.detail ?? first?.message ?? problem?.error_description ?? problem?.title
  return new Failure(answer.status, detail ?? `The service answered ${answer.status}.`, problem)
}

export interface Event {
  id: string
  name: string
  data: any
}

/** Server-sent events, one by one, until the stream ends or is aborted. */
export async function* events(method: string, path: string, extra: Extra = {}): AsyncGenerator<Event> {
  await session.fresh()
  const headers = { ...extra.headers, accept: 'text/event-stream' }
  const response = await fetch(prefix + path, { method, ...prepare({ ...extra, headers }) })
  if (!response.ok || !response.body) {
    const text = await response.text()
    let problem: any = null
    try {
      problem = JSON.parse(text)
    } catch {
      // Not JSON: the status says enough.
    }
    throw new Failure(response.status, problem?.detail ?? problem?.errors?.[0]?.message ?? `The service answered ${response.status}.`, problem)
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  for (;;) {
    const { value, done } = await reader.read()
    if (done) return
    rest += value
    const parts = rest.split('\n\n')
    rest = parts.pop() ?? ''
    for (const part of parts) {
      const found = parse(part)
      if (found) yield found
    }
  }
}

function parse(part: string): Event | null {
  let id = ''
  let name = 'message'
  const data: string[] = []
  for (const line of part.split('\n')) {
    if (line.startsWith('id: ')) id = line.slice(4)
    else if (line.startsWith('event: ')) name = line.slice(7)
    else if (line.startsWith('data: ')) data.push(line.slice(6))
  }
  return data.length ? { id, name, data: JSON.parse(data.join('\n')) } : null
}
