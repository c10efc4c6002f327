/** Reference: both documents of the viewer side by side, the GraphQL schema and the operations of REST. */
import { buildClientSchema, getIntrospectionQuery, isIntrospectionType, isSpecifiedScalarType, printType } from 'graphql'
import { useEffect, useMemo, useState } from 'preact/hooks'
import { ask, prefix } from '../api'
import { Copy, Empty, Heading, Loading, Problem } from '../parts/ui'
import { to } from '../router'
import { count } from '../words'

interface Operation {
  method: string
  path: string
  summary: string
  description: string
  parameters: { name: string; in: string; required?: boolean; description?: string }[]
  statuses: string[]
}

type Document = { paths: Record<string, Record<string, any>>; components?: Record<string, Record<string, any>> }

const METHODS = ['get', 'post', 'put', 'patch', 'delete']

/** A node of the document, or what it refers to. */
function resolve(document: Document, node: any): any {
  const [, , kind = '', name = ''] = String(node?.$ref ?? '').split('/')
  return node?.$ref ? (document.components?.[kind]?.[name] ?? {}) : node
}

function operationsOf(document: Document): Operation[] {
  return Object.entries(document.paths).flatMap(([path, item]) =>
    METHODS.filter((method) => item[method]).map((method) => ({
      method: method.toUpperCase(),
      path,
      summary: item[method].summary ?? '',
      description: item[method].description ?? '',
      parameters: [...(item['parameters'] ?? []), ...(item[method].parameters ?? [])].map((parameter) => resolve(document, parameter)),
      statuses: Object.keys(item[method].responses ?? {}),
    })),
  )
}

/** The types of a schema as text, each with its description. */
function typesOf(introspection: any): string[] {
  const types = Object.values(buildClientSchema(introspection).getTypeMap())
  return types.filter((type) => !isIntrospectionType(type) && !isSpecifiedScalarType(type)).map(printType)
}

async function load(): Promise<{ types: string[]; operations: Operation[] }> {
  const [schema, document] = await Promise.all([ask<any>('POST', '/graphql', { body: { query: getIntrospectionQuery() } }), ask<Document>('GET', '/openapi.json')])
  return { types: schema.data ? typesOf(schema.data) : [], operations: operationsOf(document) }
}

export function ReferencePage() {
  const [loaded, setLoaded] = useState<Awaited<ReturnType<typeof load>> | null>(null)
  const [failed, setFailed] = useState<unknown>(null)
  const [text, setText] = useState('')
  useEffect(() => {
    load().then(setLoaded, setFailed)
  }, [])
  const word = text.trim().toLowerCase()
  const types = useMemo(() => loaded?.types.filter((type) => type.toLowerCase().includes(word)) ?? [], [loaded, word])
  if (failed) return <Problem error={failed} />
  if (!loaded) return <Loading />
  const operations = loaded.operations.filter((one) => `${one.method} ${one.path} ${one.summary}`.toLowerCase().includes(word))
  return (
    <>
      <Heading title="Reference" doc="Both documents, as your role sees them.">
        <input data-filter="" type="search" aria-label="Filter both documents" placeholder="Filter…" value={text} onInput={(event) => setText(event.currentTarget.value)} />
        <a class="button" href={to('model')}>
          Model
        </a>
      </Heading>
      <div class="leaves">
        <section class="leaf left">
          <div class="leaf-head">
            <h2>GraphQL</h2>
            <span class="soft">
              {count(types.length, 'type')} at <code>{prefix}/graphql</code>
            </span>
            <Copy text={types.join('\n\n')} />
          </div>
          <div class="panel-body scroll tall" tabIndex={0} role="region" aria-label="GraphQL schema">
            {types.length ? <pre>{types.join('\n\n')}</pre> : <Empty title={loaded.types.length ? 'No type has this word' : 'This service shows its schema to nobody of your role'} />}
          </div>
        </section>
        <section class="leaf right">
          <div class="leaf-head">
            <h2>REST</h2>
            <span class="soft">
              {count(operations.length, 'operation')} in <code>{prefix}/openapi.json</code>
            </span>
          </div>
          <div class="panel-body scroll tall" tabIndex={0} role="region" aria-label="REST operations">
            {operations.map((one) => (
              <Detail key={`${one.method} ${one.path}`} operation={one} />
            ))}
            {!operations.length && <Empty title="No operation has this word" />}
          </div>
        </section>
      </div>
    </>
  )
}

function Detail({ operation }: { operation: Operation }) {
  return (
    <details>
      <summary>
        <code>
          {operation.method} {operation.path}
        </code>{' '}
        <span class="soft">{operation.summary}</span>
      </summary>
      {operation.description && <p>{operation.description}</p>}
      <ul>
        {operation.parameters.map((parameter) => (
          <li key={`${parameter.in} ${parameter.name}`}>
            <code>{parameter.name}</code> <span class="soft">in the {parameter.in}{parameter.required ? ', required' : ''}</span> {parameter.description}
          </li>
        ))}
      </ul>
      <p class="soft">Answers {operation.statuses.join(', ')}.</p>
    </details>
  )
}
