// node issuer.mjs CLIENTS: runs an OpenID provider on a free port of this machine, prints its address as one line, and
// ends with its standard input. CLIENTS is {id: {secret, algorithm, claims}}; each of them gets access tokens by client
// credentials, which are JWTs for the resource that it names, signed by the algorithm, with the claims.
import { generateKeyPairSync } from 'node:crypto'
import { createServer } from 'node:http'
import Provider from 'oidc-provider'

const clients = JSON.parse(process.argv[2])
const kinds = [
  ['RS256', 'rsa', { modulusLength: 2048 }],
  ['ES256', 'ec', { namedCurve: 'P-256' }],
  ['Ed25519', 'ed25519', {}],
]
const keys = kinds.map(([alg, kind, options]) => {
  const { privateKey } = generateKeyPairSync(kind, options)
  return { ...privateKey.export({ format: 'jwk' }), alg, use: 'sig', kid: alg }
})

function about(resource, client) {
  const { algorithm } = clients[client.clientId]
  return { scope: 'read write', audience: resource, accessTokenFormat: 'jwt', jwt: { sign: { alg: algorithm } } }
}

const server = createServer()
server.listen(0, '127.0.0.1', () => {
  const issuer = `http://127.0.0.1:${server.address().port}`
  const provider = new Provider(issuer, {
    clients: Object.entries(clients).map(([id, { secret }]) => ({
      client_id: id,
      client_secret: secret,
      grant_types: ['client_credentials'],
      redirect_uris: [],
      response_types: [],
    })),
    extraTokenClaims: (_, token) => clients[token.clientId].claims,
    features: {
      clientCredentials: { enabled: true },
      devInteractions: { enabled: false },
      resourceIndicators: { enabled: true, getResourceServerInfo: (_, resource, client) => about(resource, client) },
    },
    jwks: { keys },
  })
  server.on('request', provider.callback())
  console.log(issuer)
})
process.stdin.on('end', () => process.exit(0)).resume()
