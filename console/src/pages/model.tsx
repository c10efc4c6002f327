/** Model: resources and relations as a diagram, and each of them in both styles. */
import { Graph, layout } from '@dagrejs/dagre'
import { useMemo, useRef, useState } from 'preact/hooks'
import { Empty, Heading, Tabs } from '../parts/ui'
import { setQuery, to, usePlace } from '../router'
import { collection, shared, slug } from '../shell'
import { useStore } from '../store'
import type { Field, Model, Resource } from '../types'
import { count } from '../words'

const LINES = 9
const LINE = 18
const HEAD = 30
const WIDTH = 210

interface Box {
  resource: Resource
  fields: Field[]
  more: number
  x: number
  y: number
  height: number
}

interface Edge {
  from: string
  to: string
  name: string
  many: boolean
  points: { x: number; y: number }[]
}

/** Where every box and every arrow is. A relation and its inverse are one arrow. */
function arrange(resources: Resource[]): { boxes: Box[]; edges: Edge[]; width: number; top: number; height: number } {
  const graph = new Graph({ multigraph: true })
  graph.setGraph({ rankdir: 'LR', nodesep: 28, ranksep: 100, marginx: 12, marginy: 12 })
  const names = new Set(resources.map((resource) => resource.name))
  const sizes = new Map<string, { fields: Field[]; more: number; height: number }>()
  for (const resource of resources) {
    const own = resource.fields.filter((field) => !field.keyOf && !/^(version|createdAt|updatedAt)$/.test(field.name))
    const fields = own.slice(0, LINES)
    const more = own.length - fields.length
    const height = HEAD + LINE * (fields.length + (more ? 1 : 0)) + 8
    sizes.set(resource.name, { fields, more, height })
    graph.setNode(resource.name, { width: WIDTH, height })
  }
  for (const resource of resources) {
    for (const field of resource.fields) {
      if (!field.relation || field.relation.many || !names.has(field.relation.to)) continue
      graph.setEdge(resource.name, field.relation.to, {}, field.name)
    }
  }
  layout(graph)
  const boxes = resources.map((resource) => {
    const node = graph.node(resource.name) as unknown as { x: number; y: number }
    const size = sizes.get(resource.name)
    const height = size?.height ?? HEAD
    return { resource, fields: size?.fields ?? [], more: size?.more ?? 0, x: node.x - WIDTH / 2, y: node.y - height / 2, height }
  })
  const edges = graph.edges().map((edge) => ({ from: edge.v, to: edge.w, name: String(edge.name ?? ''), many: false, points: (graph.edge(edge) as unknown as { points: { x: number; y: number }[] }).points }))
  const { width = 0, height = 0 } = graph.graph() as unknown as { width?: number; height?: number }
  const top = Math.min(0, ...edges.flatMap((edge) => edge.points.map((point) => point.y - 8)))
  const bottom = Math.max(height, ...edges.flatMap((edge) => edge.points.map((point) => point.y + 8)))
  return { boxes, edges, width, top, height: bottom - top }
}

/** A line through points with round corners. */
function path(points: { x: number; y: number }[]): string {
  const [first, ...rest] = points
  if (!first) return ''
  let text = `M${first.x},${first.y}`
  for (let n = 0; n < rest.length - 1; n++) {
    const [now, next] = [rest[n], rest[n + 1]]
    if (now && next) text += ` Q${now.x},${now.y} ${(now.x + next.x) / 2},${(now.y + next.y) / 2}`
  }
  const last = rest.at(-1)
  return last ? `${text} L${last.x},${last.y}` : text
}

export function ModelPage() {
  const { model } = useStore(shared)
  const place = usePlace()
  const [text, setText] = useState('')
  if (!model) return null
  if (!model.resources.length) return <Empty title="The model has no resource that you may see" />
  const tab = place.query.get('tab') ?? 'diagram'
  const chosen = model.resources.find((resource) => resource.name === place.query.get('of')) ?? null
  const wanted = model.resources.filter((resource) => resource.name.toLowerCase().includes(text.trim().toLowerCase()))
  return (
    <>
      <Heading title="Model" doc={model.description || `${count(model.resources.length, 'resource')}, as your role sees them.`}>
        <input data-filter="" type="search" aria-label="Filter resources" placeholder="Filter…" value={text} onInput={(event) => setText(event.currentTarget.value)} />
        <a class="button" href={to('reference')}>
          Reference
        </a>
        <a class="button" href={to('request')}>
          Ask
        </a>
      </Heading>
      <section class="panel">
        <Tabs
          label="Model"
          tabs={[
            { id: 'diagram', title: 'Diagram' },
            { id: 'both', title: 'Both styles' },
          ]}
          at={tab}
          onChange={(id) => setQuery({ tab: id })}
        >
          {tab === 'diagram' ? <Diagram resources={wanted} chosen={chosen} /> : <Both model={model} chosen={chosen ?? wanted[0] ?? null} />}
        </Tabs>
      </section>
    </>
  )
}

function Diagram({ resources, chosen }: { resources: Resource[]; chosen: Resource | null }) {
  const { boxes, edges, width, top, height } = useMemo(() => arrange(resources), [resources.map((resource) => resource.name).join()])
  const [at, setAt] = useState(chosen?.name ?? '')
  const svg = useRef<SVGSVGElement>(null)
  const open = (resource: Resource) => setQuery({ tab: 'both', of: resource.name }, false)
  /** The nearest box in a direction. */
  const move = (event: KeyboardEvent, from: Box) => {
    const steps: Record<string, [number, number]> = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] }
    const step = steps[event.key]
    if (event.key === 'Enter') return open(from.resource)
    if (!step) return
    event.preventDefault()
    const [dx, dy] = step
    const distance = (box: Box) => {
      const [x, y] = [box.x - from.x, box.y + box.height / 2 - from.y - from.height / 2]
      const along = x * dx + y * dy
      return along <= 1 ? Number.POSITIVE_INFINITY : along + 2 * Math.abs(x * dy + y * dx)
    }
    const next = boxes.filter((box) => box !== from && distance(box) < Number.POSITIVE_INFINITY).sort((a, b) => distance(a) - distance(b))[0]
    if (next) svg.current?.querySelector<SVGGElement>(`[data-name="${CSS.escape(next.resource.name)}"]`)?.focus()
  }
  return (
    <>
      <p class="soft">Arrows move between boxes, Enter opens one. An arrow leads from a row to the one that it refers to.</p>
      <svg ref={svg} class="diagram" width={width} height={height} viewBox={`0 ${top} ${width} ${height}`} role="group" aria-label="Resources and their relations">
        <defs>
          <marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">
            <path class="arrow" d="M0 0 8 4 0 8z" />
          </marker>
        </defs>
        {edges.map((edge) => (
          <path key={`${edge.from}.${edge.name}`} class={edge.from === at || edge.to === at ? 'edge on' : 'edge'} d={path(edge.points)} marker-end="url(#arrow)" />
        ))}
        {boxes.map((box, n) => (
          <g
            key={box.resource.name}
            data-name={box.resource.name}
            class={box.resource.name === at ? 'on' : undefined}
            transform={`translate(${box.x},${box.y})`}
            tabindex={at ? (box.resource.name === at ? 0 : -1) : n === 0 ? 0 : -1}
            role="button"
            onFocus={() => setAt(box.resource.name)}
            onKeyDown={(event) => move(event, box)}
            onClick={() => open(box.resource)}
          >
            <rect class="box" width={WIDTH} height={box.height} rx="8" />
            <path class="box-head" d={`M1 ${HEAD}V8a7 7 0 0 1 7-7H${WIDTH - 8}a7 7 0 0 1 7 7V${HEAD}z`} />
            <text class="name" x="12" y="20">
              {box.resource.name}
            </text>
            {box.fields.map((field, i) => [
              <text key={`n${i}`} x="12" y={HEAD + 16 + LINE * i}>
                {field.name}
              </text>,
              <text key={`t${i}`} class="type" x={WIDTH - 12} y={HEAD + 16 + LINE * i} text-anchor="end">
                {field.relation?.many ? `[${field.relation.to}]` : field.type}
              </text>,
            ])}
            {box.more > 0 && (
              <text class="type" x="12" y={HEAD + 16 + LINE * box.fields.length}>
                {box.more} more
              </text>
            )}
          </g>
        ))}
      </svg>
    </>
  )
}

/** What a resource is in GraphQL, and what in REST, line by line. */
function Both({ model, chosen }: { model: Model; chosen: Resource | null }) {
  if (!chosen) return <Empty title="No resource has this name" />
  return (
    <div class="form">
      <div class="row">
        <select aria-label="Resource" value={chosen.name} onChange={(event) => setQuery({ of: event.currentTarget.value })}>
          {model.resources.map((resource) => (
            <option key={resource.name}>{resource.name}</option>
          ))}
        </select>
        <a href={to(`data/${slug(chosen)}`)}>Rows</a>
        <span class="soft">{chosen.doc}</span>
      </div>
      <Pairs title="Operations" head="What" rows={operations(chosen)} />
      <Pairs title="Fields" head="Field" rows={fields(chosen)} />
    </div>
  )
}

type Pair = [what: string, graphql: string, rest: string, doc?: string]

function operations(resource: Resource): Pair[] {
  const { name, one, many, verbs } = resource
  const path = collection(resource)
  const pairs: Pair[] = []
  if (verbs.read) {
    pairs.push(['one row', `${one}(id: ID!): ${name}`, `GET ${path}/{id}`])
    pairs.push(['a page', `${many}Connection(first, after, where, orderBy)`, `GET ${path}?first&after&where&sort`])
    pairs.push(['a list', `${many}(first, where, orderBy): [${name}!]!`, '–'])
    pairs.push(['a summary', `${many}Summary(where)`, `GET ${path}/summary?where&fields`])
    pairs.push(['groups', `${many}Groups(by, having)`, `GET ${path}/groups?by&having`])
  }
  if (resource.changes) pairs.push(['changes', `subscription ${one}Changed`, `GET ${path}/changes`])
  if (verbs.create) pairs.push(['create', `create${name}(input: ${name}Create!)`, `POST ${path}`])
  if (verbs.update) pairs.push(['update', `update${name}(id, patch, ifVersion)`, `PATCH ${path}/{id}`], ['replace', `replace${name}(id, input, ifVersion)`, `PUT ${path}/{id}`])
  if (verbs.delete) pairs.push(['delete', `delete${name}(id, ifVersion)`, `DELETE ${path}/{id}`])
  if (verbs.restore && resource.softDelete) pairs.push(['restore', `restore${name}(id)`, `POST ${path}/{id}/restore`])
  for (const action of resource.actions) {
    const given = action.arguments.map((argument) => `${argument.name}: ${argument.type}`).join(', ')
    const root = action.root ?? action.name
    pairs.push([action.name, action.on === 'row' ? `${root}(id: ID!${given ? `, ${given}` : ''})` : `${root}${given ? `(${given})` : ''}`, `${action.method} ${action.path}`, action.doc ?? ''])
  }
  return pairs
}

function fields(resource: Resource): Pair[] {
  const path = collection(resource)
  return resource.fields.map((field): Pair => {
    if (field.relation?.many) return [field.name, `${field.name}(first, where): [${field.relation.to}!]!`, `GET ${path}/{id}/${field.name} · fields=${field.name}(…)`, field.doc ?? '']
    if (field.relation) return [field.name, `${field.name}: ${field.relation.to}${field.nullable ? '' : '!'}`, `fields=${field.name}(…)`, field.doc ?? '']
    const rest = field.filter?.length ? `"${field.name}" · ?${field.name}[${field.filter[1] ?? 'eq'}]=` : `"${field.name}"`
    return [field.name, `${field.name}: ${field.type}`, rest, field.doc ?? '']
  })
}

function Pairs({ title, head, rows }: { title: string; head: string; rows: Pair[] }) {
  return (
    <section>
      <h2>{title}</h2>
      <div class="scroll" tabIndex={0} role="region" aria-label={title}>
        <table class="pairs">
          <thead>
            <tr>
              <th scope="col">{head}</th>
              <th scope="col">GraphQL</th>
              <th scope="col">REST</th>
            </tr>
          </thead>
          <tbody>
            {rows.map(([what, graphql, rest, doc]) => (
              <tr key={what}>
                <th scope="row">
                  {what}
                  {doc ? <div class="soft">{doc}</div> : null}
                </th>
                <td>
                  <code>{graphql}</code>
                </td>
                <td>
                  <code>{rest}</code>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  )
}
