/** What the whole page shares: the model of the viewer, and what the service said of itself. */
import { ask } from './api'
import { store } from './store'
import type { Boot, Model, Resource } from './types'

export interface Shared {
  boot: Boot | null
  model: Model | null
  error: unknown
}

export const shared = store<Shared>({ boot: null, model: null, error: null })

const SHORTEST_LABEL = 8

/** Does the label tell rows apart? A text of a few characters, like a currency, does not. */
function tells(resource: Resource): boolean {
  const field = resource.fields?.find((each) => each.name === resource.label)
  const longest = field?.constraints?.['maxLength'] ?? Number(/\{(\d+)\}/.exec(String(field?.constraints?.['pattern'] ?? ''))?.[1] ?? SHORTEST_LABEL)
  return Number(longest) >= SHORTEST_LABEL
}

/** The service leaves out what is empty or false; here it is filled in. */
function whole(model: Model): Model {
  const resources = model.resources.map(
    (each): Resource => ({
      ...each,
      label: tells(each) ? (each.label ?? null) : null,
      search: Boolean(each.search),
      softDelete: Boolean(each.softDelete),
      changes: Boolean(each.changes),
      history: Boolean(each.history),
      export: Boolean(each.export),
      verbs: Object.assign({ read: false, create: false, update: false, delete: false, restore: false }, each.verbs),
      fields: each.fields ?? [],
      actions: (each.actions ?? []).map((action) => ({ ...action, arguments: action.arguments ?? [] })),
    }),
  )
  return { ...model, roles: model.roles ?? [], admin: Boolean(model.admin), resources }
}

/** Reads the model anew: after signing in, and after a change of whom one looks as. */
export async function loadModel(): Promise<void> {
  try {
    const model = whole(await ask<Model>('GET', '/console/api/model'))
    shared.set((now) => ({ ...now, model, error: null }))
  } catch (error) {
    shared.set((now) => ({ ...now, model: null, error }))
  }
}

export const resourceOf = (model: Model, path: string): Resource | undefined =>
  model.resources.find((each) => each.path === path || each.path === `/${path}`)

export const resourceNamed = (model: Model, name: string): Resource | undefined => model.resources.find((each) => each.name === name)

/** `/orders`, whether the model says it with its slash or without. */
export const collection = (resource: Resource) => (resource.path.startsWith('/') ? resource.path : `/${resource.path}`)

export const slug = (resource: Resource) => collection(resource).slice(1)
