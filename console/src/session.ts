/** Who is signed in, and as whom the pages look.
 *
 * `dev`: a one-use code in the fragment becomes a token, which this tab keeps until it is closed or signed out.
 * `serve`: OAuth with PKCE; the token is in memory only. After a reload, the service is asked without a question
 * (`prompt=none`) whether the browser is still signed in.
 */
import { prefix } from './api'
import { keep, kept, store } from './store'
import type { Boot, Signed } from './types'

export interface Session {
  state: 'starting' | 'out' | 'in'
  name: string | null
  /** A role or a user whose token is used instead, in `dev`; by its name. */
  as: string | null
  /** The id of that user. */
  user: string | null
  error: string | null
}

export const current = store<Session>({ state: 'starting', name: null, as: null, user: null, error: null })

let boot: Boot | null = null
let own: { token: string; until: number } | null = null
let other: { token: string; until: number } | null = null
let renewal: string | null = null
let renewing: Promise<void> | null = null

const KEPT = 'diptych.session'
const PENDING = 'diptych.sign-in'
const SIGNED_IN = 'signed-in'

const held = (signed: Signed) => ({ token: signed.accessToken, until: Date.now() + signed.expiresIn * 1000 })

async function post(path: string, body: unknown, token?: string): Promise<Response> {
  const headers: Record<string, string> = { 'content-type': 'application/json', accept: 'application/json' }
  if (token) headers['authorization'] = `Bearer ${token}`
  return fetch(prefix + path, { method: 'POST', headers, body: JSON.stringify(body), credentials: 'same-origin' })
}

async function form(path: string, fields: Record<string, string>): Promise<Response> {
  const headers = { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' }
  return fetch(path, { method: 'POST', headers, body: new URLSearchParams(fields).toString(), credentials: 'same-origin' })
}

function enter(signed: Signed): void {
  own = held(signed)
  if (boot?.mode === 'dev') sessionStorage.setItem(KEPT, JSON.stringify({ ...own, name: signed.name ?? null }))
  current.set((now) => ({ ...now, state: 'in', name: signed.name ?? now.name, error: null }))
}

function leave(error: string | null = null): void {
  own = other = null
  renewal = null
  sessionStorage.removeItem(KEPT)
  keep(SIGNED_IN, false)
  current.set({ state: 'out', name: null, as: null, user: null, error })
}

/** The code of a fragment or of a redirect, taken out of the address before anything else happens. */
function takeFromAddress(): { code: string | null; state: string | null } | null {
  const fragment = new URLSearchParams(location.hash.slice(1))
  const query = new URLSearchParams(location.search)
  const code = fragment.get('code') ?? query.get('code')
  const state = query.get('state')
  if (!code && !(query.has('error') && state)) return null
  history.replaceState(null, '', location.pathname)
  return { code, state }
}

const taken = takeFromAddress()

async function start(given: Boot): Promise<void> {
  boot = given
  try {
    if (taken && given.mode === 'dev') {
      const answer = await post('/console/api/code', { code: taken.code })
      if (answer.ok) return enter((await answer.json()) as Signed)
    } else if (taken?.code) {
      return await finish(taken.code, taken.state)
    }
    const text = sessionStorage.getItem(KEPT)
    if (text && given.mode === 'dev') {
      const found = JSON.parse(text) as { token: string; until: number; name: string | null }
      if (found.until > Date.now()) {
        own = found
        current.set((now) => ({ ...now, state: 'in', name: found.name }))
        return
      }
    }
    if (given.mode === 'serve' && !taken && kept(SIGNED_IN, false)) return await signIn('none')
    leave(taken && given.mode === 'dev' ? 'This link was used before. The terminal that runs the service prints a new one when it starts.' : null)
  } catch {
    leave('Signing in did not work: the service cannot be reached.')
  }
}

const base64url = (bytes: Uint8Array) =>
  btoa(String.fromCharCode(...bytes)).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')

/** Leads to the sign-in page of the service (OAuth code with PKCE). */
async function signIn(prompt?: 'none' | 'login'): Promise<void> {
  if (!boot?.signIn) return
  const verifier = base64url(crypto.getRandomValues(new Uint8Array(32)))
  const state = base64url(crypto.getRandomValues(new Uint8Array(16)))
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier)))
  sessionStorage.setItem(PENDING, JSON.stringify({ verifier, state, back: location.pathname }))
  const query = new URLSearchParams({
    response_type: 'code',
    client_id: boot.signIn.client,
    redirect_uri: boot.signIn.redirect,
    state,
    code_challenge: base64url(digest),
    code_challenge_method: 'S256',
    scope: boot.signIn.scope ?? 'read write',
  })
  if (prompt) query.set('prompt', prompt)
  location.assign(`${boot.signIn.authorize}?${query}`)
}

async function finish(code: string, state: string | null): Promise<void> {
  const text = sessionStorage.getItem(PENDING)
  sessionStorage.removeItem(PENDING)
  const pending = text ? (JSON.parse(text) as { verifier: string; state: string; back: string }) : null
  if (!pending || pending.state !== state || !boot?.signIn) return leave('This sign-in was not started here. Try again.')
  const answer = await form(boot.signIn.token, {
    grant_type: 'authorization_code',
    code,
    redirect_uri: boot.signIn.redirect,
    client_id: boot.signIn.client,
    code_verifier: pending.verifier,
  })
  if (!answer.ok) return leave('The service did not accept the sign-in. Try again.')
  received(await answer.json())
  history.replaceState(null, '', pending.back)
  dispatchEvent(new PopStateEvent('popstate'))
}

function received(found: { access_token: string; expires_in?: number; refresh_token?: string }): void {
  renewal = found.refresh_token ?? null
  enter({ accessToken: found.access_token, expiresIn: found.expires_in ?? 300 })
  keep(SIGNED_IN, true)
}

async function renew(): Promise<boolean> {
  if (!boot?.signIn || !renewal) return false
  const answer = await form(boot.signIn.token, { grant_type: 'refresh_token', refresh_token: renewal, client_id: boot.signIn.client })
  if (!answer.ok) return false
  received(await answer.json())
  return true
}

/** Before a request: a token that is about to expire is renewed, once for all who wait. */
async function fresh(): Promise<void> {
  if (boot?.mode !== 'serve' || !own || own.until - Date.now() > 30_000) return
  renewing ??= renew()
    .then((worked) => {
      if (!worked) leave('Your sign-in has expired.')
    })
    .finally(() => {
      renewing = null
    })
  await renewing
}

/** Whom one views as: a role, or a user with a name. */
export type Whom = { role: string } | { user: string; name: string }

async function viewAs(whom: Whom | null): Promise<void> {
  other = null
  if (!whom) return current.set((now) => ({ ...now, as: null, user: null }))
  const name = 'role' in whom ? whom.role : whom.name
  if (boot?.mode === 'dev') {
    const answer = await post('/console/api/as', 'role' in whom ? whom : { user: whom.user }, own?.token)
    if (!answer.ok) throw new Error((await answer.json().catch(() => null))?.detail ?? 'The service does not allow it.')
    other = held((await answer.json()) as Signed)
  }
  current.set((now) => ({ ...now, as: name, user: 'user' in whom ? whom.user : null }))
}

export const session = {
  start,
  signIn,
  signOut: () => leave(),
  viewAs,
  fresh,
  token: () => (other ?? own)?.token ?? '',
  /** One's own token, whomever one views as: for explanations. */
  ownToken: () => own?.token ?? '',
}
