/** A request as commands and code of others. */
import type { Parsed } from './rest-text'

const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`

export interface Sent {
  graphql: { query: string; variables: unknown } | null
  rest: Parsed | null
}

const base = () => location.origin

export function curlGraphql(sent: Sent): string {
  if (!sent.graphql) return ''
  const body = JSON.stringify(compact(sent.graphql))
  return ["curl -sS", `  ${base()}/graphql`, `  -H 'Content-Type: application/json'`, `  -H "Authorization: Bearer $TOKEN"`, `  --data ${quoted(body)}`].join(' \\\n')
}

export function curlRest(sent: Sent): string {
  if (!sent.rest) return ''
  const lines = [`curl -sS${sent.rest.method === 'GET' ? '' : ` -X ${sent.rest.method}`}`, `  ${quoted(base() + sent.rest.url)}`, `  -H "Authorization: Bearer $TOKEN"`]
  for (const [name, value] of Object.entries(sent.rest.headers)) lines.push(`  -H ${quoted(`${name}: ${value}`)}`)
  if (sent.rest.body) {
    if (!sent.rest.headers['content-type']) lines.push(`  -H 'Content-Type: application/json'`)
    lines.push(`  --data ${quoted(sent.rest.body)}`)
  }
  return lines.join(' \\\n')
}

const compact = (graphql: { query: string; variables: unknown }) =>
  graphql.variables && Object.keys(graphql.variables).length ? graphql : { query: graphql.query }

export function javascript(sent: Sent): string {
  const parts: string[] = []
  if (sent.graphql) {
    parts.push(`// GraphQL
const answer = await fetch("${base()}/graphql", {
  method: "POST",
  headers: { "content-type": "application/json", authorization: \`Bearer \${token}\` },
  body: JSON.stringify(${indent(JSON.stringify(compact(sent.graphql), null, 2))}),
})
const { data, errors } = await answer.json()`)
  }
  if (sent.rest) {
    const { method, url, headers, body } = sent.rest
    const own = { ...(body ? { 'content-type': 'application/json' } : {}), ...headers }
    const written = Object.entries(own).map(([name, value]) => `"${name}": ${JSON.stringify(value)}, `).join('')
    parts.push(`// REST
const answer = await fetch(${JSON.stringify(base() + url)}, {
  method: "${method}",
  headers: { ${written}authorization: \`Bearer \${token}\` },${body ? `\n  body: JSON.stringify(${indent(body)}),` : ''}
})
const result = await answer.json()`)
  }
  return parts.join('\n\n')
}

const indent = (text: string) => text.replaceAll('\n', '\n  ')

export function python(sent: Sent): string {
  const parts = ['import httpx', `client = httpx.Client(base_url="${base()}", headers={"Authorization": f"Bearer {token}"})`]
  if (sent.graphql) parts.push(`# GraphQL\nanswer = client.post("/graphql", json=${pythonValue(compact(sent.graphql))})`)
  if (sent.rest) {
    const { method, url, headers, body } = sent.rest
    const extra = Object.keys(headers).length ? `, headers=${pythonValue(headers)}` : ''
    let sentBody = ''
    if (body) {
      try {
        sentBody = `, json=${pythonValue(JSON.parse(body))}`
      } catch {
        sentBody = `, content=${JSON.stringify(body)}`
      }
    }
    parts.push(`# REST\nanswer = client.request("${method}", ${JSON.stringify(url)}${extra}${sentBody})`)
  }
  return parts.join('\n\n')
}

function pythonValue(value: unknown): string {
  if (value === null || value === undefined) return 'None'
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  if (Array.isArray(value)) return `[${value.map(pythonValue).join(', ')}]`
  if (typeof value === 'object') return `{${Object.entries(value).map(([name, each]) => `${JSON.stringify(name)}: ${pythonValue(each)}`).join(', ')}}`
  return typeof value === 'string' && value.includes('\n') ? `"""${value.replaceAll('\\', '\\\\').replaceAll('"""', '\\"\\"\\"')}"""` : JSON.stringify(value)
}
