/** The fields of the model as a tree with checkboxes, beside the GraphQL document: what is checked is selected. */
import { type FieldNode, Kind, type OperationDefinitionNode, parse, print, type SelectionNode } from 'graphql'
import { useState } from 'preact/hooks'
import { shared } from '../shell'
import { useStore } from '../store'
import type { Field, Model, Resource } from '../types'

type Path = string[]

const isPlain = (field: Field) => !field.writeOnly && field.kind !== 'value' && !field.relation

const fieldNode = (name: string, selections: SelectionNode[] | null): FieldNode => ({
  kind: Kind.FIELD,
  name: { kind: Kind.NAME, value: name },
  ...(selections ? { selectionSet: { kind: Kind.SELECTION_SET, selections } } : {}),
})

/** The first operation of a document, if it is one that can be read. */
function operationOf(query: string): OperationDefinitionNode | null {
  try {
    const found = parse(query).definitions[0]
    return found?.kind === Kind.OPERATION_DEFINITION && found.operation === 'query' ? found : null
  } catch {
    return null
  }
}

const inner = (selections: readonly SelectionNode[] | undefined, name: string): FieldNode | undefined =>
  selections?.find((node): node is FieldNode => node.kind === Kind.FIELD && node.name.value === name)

/** Is the field at a path selected? */
function has(selections: readonly SelectionNode[] | undefined, [name, ...rest]: Path): boolean {
  if (name === undefined) return true
  const node = inner(selections, name)
  return Boolean(node) && has(node?.selectionSet?.selections, rest)
}

/** The selections with a path added, or taken away; what selects nothing any more goes with it. */
function toggled(selections: readonly SelectionNode[], [name, ...rest]: Path, on: boolean): SelectionNode[] {
  if (name === undefined) return [...selections]
  const node = inner(selections, name)
  if (!rest.length) return on ? [...selections, ...(node ? [] : [fieldNode(name, null)])] : selections.filter((each) => each !== node)
  const changed = toggled(node?.selectionSet?.selections ?? [], rest, on)
  if (!changed.length) return selections.filter((each) => each !== node)
  const next: FieldNode = node ? { ...node, selectionSet: { kind: Kind.SELECTION_SET, selections: changed } } : fieldNode(name, changed)
  return node ? selections.map((each) => (each === node ? next : each)) : [...selections, next]
}

export function FieldTree({ query, onChange }: { query: string; onChange: (query: string) => void }) {
  const { model } = useStore(shared)
  const operation = operationOf(query)
  if (!model) return null
  if (query.trim() && !operation) return <p class="field-tree soft">The tree is for a query that can be read.</p>
  const selections = operation?.selectionSet.selections ?? []
  const toggle = (path: Path, on: boolean) => {
    const next = toggled(selections, path, on)
    if (!next.length) return onChange('')
    const first: OperationDefinitionNode = operation ? { ...operation, selectionSet: { kind: Kind.SELECTION_SET, selections: next } } : { kind: Kind.OPERATION_DEFINITION, operation: 'query' as OperationDefinitionNode['operation'], selectionSet: { kind: Kind.SELECTION_SET, selections: next } }
    const others = query.trim() ? parse(query).definitions.slice(1) : []
    onChange(`${print({ kind: Kind.DOCUMENT, definitions: [first, ...others] })}\n`)
  }
  return (
    <div class="field-tree" role="group" aria-label="Fields">
      {model.resources.filter((resource) => resource.verbs.read).map((resource) => (
        <Branch key={resource.name} model={model} resource={resource} path={[resource.many]} has={(path) => has(selections, path)} toggle={toggle} />
      ))}
    </div>
  )
}

interface BranchProps {
  model: Model
  resource: Resource
  path: Path
  has: (path: Path) => boolean
  toggle: (path: Path, on: boolean) => void
}

/** A resource, or a relation to one, that opens to its fields. */
function Branch({ model, resource, path, has, toggle }: BranchProps) {
  const [open, setOpen] = useState(() => has(path))
  return (
    <details open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{path.at(-1)}</summary>
      {open &&
        resource.fields.map((field) => {
          const target = field.relation && model.resources.find((each) => each.name === field.relation?.to)
          if (target) return <Branch key={field.name} model={model} resource={target} path={[...path, field.name]} has={has} toggle={toggle} />
          if (!isPlain(field)) return null
          const at = [...path, field.name]
          return (
            <label key={field.name} title={field.doc ?? undefined}>
              <input type="checkbox" checked={has(at)} onChange={(event) => toggle(at, event.currentTarget.checked)} /> {field.name} <span class="soft">{field.type}</span>
            </label>
          )
        })}
    </details>
  )
}
