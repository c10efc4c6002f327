// node openid.mjs ISSUER ADDRESS < GIVEN: signs a user in at the service that listens at ADDRESS and is known as ISSUER, by
// openid-client with its default discovery, by oauth4webapi, and by Auth.js (@auth/core), and prints what each found.
// GIVEN is {app, backend, tool, redirect, email, password}: a client without a secret, one with, and one for devices.
import * as client from 'openid-client'
import * as oauth from 'oauth4webapi'
import { Auth, customFetch, skipCSRFCheck } from '@auth/core'
import { text } from 'node:stream/consumers'
import { browser } from './browser.mjs'

const [issuer, address] = process.argv.slice(2)
const given = JSON.parse(await text(process.stdin))
const user = { email: given.email, password: given.password }
const here = (url, options) => fetch(String(url.url ?? url).replace(issuer, address), options)
const { authorize, connect } = browser(issuer, here)

async function failure(work) {
  try {
    await work()
    return null
  } catch (error) {
    return error.error ?? error.code ?? String(error)
  }
}

// openid-client, as its README does it: PKCE, state, nonce, max_age

async function byOpenidClient({ id, secret }) {
  const config = await client.discovery(new URL(issuer), id, secret, secret ? undefined : client.None(), {
    [client.customFetch]: here,
  })
  const verifier = client.randomPKCECodeVerifier()
  const checks = {
    pkceCodeVerifier: verifier,
    expectedState: client.randomState(),
    expectedNonce: client.randomNonce(),
    maxAge: 3600,
    idTokenExpected: true,
  }
  const url = client.buildAuthorizationUrl(config, {
    redirect_uri: given.redirect,
    scope: 'openid profile email read',
    code_challenge: await client.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    state: checks.expectedState,
    nonce: checks.expectedNonce,
    max_age: '3600',
    resource: issuer,
  })
  const back = await authorize(url, user)
  const tokens = await client.authorizationCodeGrant(config, back, checks)
  const claims = tokens.claims()
  const silent = client.buildAuthorizationUrl(config, {
    redirect_uri: given.redirect,
    scope: 'openid',
    prompt: 'none',
    id_token_hint: tokens.id_token,
    code_challenge: await client.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
  })
  const again = await client.authorizationCodeGrant(config, await authorize(silent, user), {
    pkceCodeVerifier: verifier,
    idTokenExpected: true,
  })
  const refreshed = await client.refreshTokenGrant(config, tokens.refresh_token)
  const resource = await client.fetchProtectedResource(
    config, refreshed.access_token, new URL(`${issuer}/users?first=1`), 'GET',
  )
  return {
    sub: claims.sub,
    audience: claims.aud,
    profile: await client.fetchUserInfo(config, tokens.access_token, claims.sub),
    silent: again.claims().sub,
    resource: resource.status,
    wrongNonce: await failure(async () => {
      const url = client.buildAuthorizationUrl(config, {
        redirect_uri: given.redirect,
        scope: 'openid',
        nonce: 'of-another-session',
        code_challenge: await client.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
      })
      const injected = await authorize(url, user)
      await client.authorizationCodeGrant(config, injected, { pkceCodeVerifier: verifier, expectedNonce: 'mine' })
    }),
    injectedCode: await failure(async () => {
      const url = client.buildAuthorizationUrl(config, {
        redirect_uri: given.redirect,
        scope: 'openid',
        code_challenge: await client.calculatePKCECodeChallenge(client.randomPKCECodeVerifier()),
        code_challenge_method: 'S256',
      })
      await client.authorizationCodeGrant(config, await authorize(url, user), { pkceCodeVerifier: verifier })
    }),
  }
}

async function byDevice() {
  const config = await client.discovery(new URL(issuer), given.tool.id, undefined, client.None(), {
    [client.customFetch]: here,
  })
  const begun = await client.initiateDeviceAuthorization(config, { scope: 'openid read' })
  await connect(new URL(begun.verification_uri), begun.user_code)
  const tokens = await client.pollDeviceAuthorizationGrant(config, { ...begun, interval: 1 })
  return { sub: tokens.claims().sub, scope: tokens.scope }
}

// oauth4webapi: every step by itself, as an OpenID client; and the API as a protected resource

async function byOauth4webapi() {
  const options = { [oauth.customFetch]: here }
  const found = await oauth.resourceDiscoveryRequest(new URL(issuer), options)
  const resource = await oauth.processResourceDiscoveryResponse(new URL(issuer), found)
  const server = new URL(resource.authorization_servers[0])
  const as = await oauth.processDiscoveryResponse(server, await oauth.discoveryRequest(server, options))
  const app = { client_id: given.app.id, require_auth_time: true }
  const verifier = oauth.generateRandomCodeVerifier()
  const nonce = oauth.generateRandomNonce()
  const state = oauth.generateRandomState()
  const url = new URL(as.authorization_endpoint)
  url.search = new URLSearchParams({
    client_id: app.client_id, redirect_uri: given.redirect, response_type: 'code', scope: 'openid email', state, nonce,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier), code_challenge_method: 'S256',
  })
  const parameters = oauth.validateAuthResponse(as, app, await authorize(url, user), state)
  const response = await oauth.authorizationCodeGrantRequest(
    as, app, oauth.None(), parameters, given.redirect, verifier, options,
  )
  const tokens = await oauth.processAuthorizationCodeResponse(as, app, response, {
    expectedNonce: nonce, maxAge: 3600, requireIdToken: true,
  })
  await oauth.validateApplicationLevelSignature(as, response, options)
  const { sub } = oauth.getValidatedIdTokenClaims(tokens)
  const info = await oauth.userInfoRequest(as, app, tokens.access_token, options)
  const asApi = async (token) => {
    const request = new Request(`${issuer}/users`, { headers: { authorization: `Bearer ${token}` } })
    return failure(() => oauth.validateJwtAccessToken(as, request, issuer, options))
  }
  return {
    profile: await oauth.processUserInfoResponse(as, app, sub, info),
    accessToken: await asApi(tokens.access_token),
    idToken: await asApi(tokens.id_token),
  }
}

// Auth.js: a provider of the type oidc, with nothing but issuer, id and secret

async function byAuthJs(checks) {
  const site = 'https://app.example'
  const config = {
    basePath: '/auth', trustHost: true, secret: 's'.repeat(32), skipCSRFCheck,
    logger: { error: (error) => console.error(error), warn() {}, debug() {} },
    callbacks: { jwt: ({ token, account }) => (account ? { ...token, kept: account.scope } : token) },
    providers: [{
      id: 'diptych', name: 'Diptych', type: 'oidc', issuer, ...(checks && { checks }),
      clientId: given.backend.id, clientSecret: given.backend.secret, [customFetch]: here,
    }],
  }
  const cookies = new Map()
  const ask = async (path, options = {}) => {
    const cookie = [...cookies].map((pair) => pair.join('=')).join('; ')
    const headers = { 'content-type': 'application/x-www-form-urlencoded', cookie }
    const response = await Auth(new Request(new URL(path, site), { ...options, headers }), config)
    for (const set of response.headers.getSetCookie()) {
      const [name, value] = set.split(';')[0].split(/=(.*)/)
      cookies.set(name, value)
    }
    return response
  }
  const sent = await ask('/auth/signin/diptych', { method: 'POST', body: new URLSearchParams() })
  const url = new URL(sent.headers.get('location'))
  const back = await authorize(url, user)
  const done = await ask(back)
  const session = await (await ask('/auth/session')).json()
  return {
    asked: ['code_challenge', 'state', 'nonce'].filter((name) => url.searchParams.has(name)),
    location: done.headers.get('location'),
    user: session?.user,
  }
}

const found = {
  openidClient: { app: await byOpenidClient(given.app), backend: await byOpenidClient(given.backend) },
  device: await byDevice(),
  oauth4webapi: await byOauth4webapi(),
  authJs: await byAuthJs(['pkce', 'state', 'nonce']),
  authJsDefault: await byAuthJs(),
}
console.log(JSON.stringify(found))
