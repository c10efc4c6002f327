/** What `/console/api/…` answers. */

export interface Boot {
  mode: 'dev' | 'serve'
  title: string
  version: string
  prefix: string
  store: 'sqlite' | 'postgresql'
  signIn: { authorize: string; token: string; client: string; redirect: string; scope?: string } | null
}

export interface Signed {
  accessToken: string
  expiresIn: number
  name?: string | null
}

export interface Relation {
  to: string
  many: boolean
  inverse?: string | null
  through?: string | null
  key?: string | null
}

export interface Field {
  name: string
  type: string
  kind: 'scalar' | 'enum' | 'relation' | 'list' | 'value' | 'json' | 'computed' | 'counter'
  scalar?: string | null
  values?: string[] | null
  states?: Record<string, string[]> | null
  required?: boolean
  nullable?: boolean
  readOnly?: boolean
  writeOnce?: boolean
  default?: unknown
  example?: unknown
  doc?: string | null
  filter?: string[]
  sort?: boolean
  relation?: Relation | null
  keyOf?: string | null
  writeOnly?: boolean
  generated?: string | null
  members?: Argument[]
  constraints?: Record<string, unknown> | null
}

export interface Argument {
  name: string
  type: string
  kind?: Field['kind']
  scalar?: string | null
  required?: boolean
  nullable?: boolean
  values?: string[] | null
  doc?: string | null
  default?: unknown
}

export interface Action {
  name: string
  path: string
  method: string
  on: 'row' | 'collection'
  root?: string | null
  doc?: string | null
  arguments: Argument[]
}

export interface Resource {
  name: string
  one: string
  many: string
  path: string
  label: string | null
  doc?: string | null
  search: boolean
  softDelete: boolean
  changes: boolean
  history: boolean
  export: boolean
  verbs: { read: boolean; create: boolean; update: boolean; delete: boolean; restore: boolean }
  fields: Field[]
  actions: Action[]
}

export interface Viewer {
  id: string | null
  name?: string | null
  roles: string[]
  scopes?: string[] | null
}

export interface Model {
  title: string
  description?: string | null
  roles: string[]
  admin: boolean
  viewer: Viewer | null
  limits: { depth: number; cost: number; page: number }
  resources: Resource[]
}

export interface Fault {
  pointer?: string
  message: string
  location?: { line: number; column: number }
}

export interface RestRequest {
  method: string
  url: string
  headers?: Record<string, string>
  body?: unknown
  note?: string | null
  none?: undefined
}

export interface Twin {
  kind: 'read' | 'write' | 'call' | 'watch' | null
  graphql: { query: string; variables?: Record<string, unknown> | null; none?: string } | null
  rest: (RestRequest | { none: string })[]
  price: { depth: number; maxDepth: number; cost: number; maxCost: number; lines: string[] } | null
  refused: { code: string; message: string; faults?: Fault[] } | null
  sql: { statement: string; parameters?: string[] }[]
  rules: { title: string; lines: string[]; file?: string | null; line?: number | null }[]
}

export interface Plans {
  refused?: Twin['refused']
  plans: { statement: string; lines: string[] }[]
}

export interface RuleCell {
  allowed: 'always' | 'never' | 'when'
  words: string
  file?: string | null
  line?: number | null
}

export interface RuleBook {
  roles: string[]
  resources: { name: string; rows: { verb?: string; field?: string; cells: Record<string, RuleCell> }[]; moves?: Record<string, string[]> }[]
}

export interface Why {
  /** Null where no row was looked at. */
  decided: boolean | null
  lines: string[]
  rules: Twin['rules']
}

/** Someone to view as, in `dev`. */
export interface Person {
  id: string
  label: string
}

export interface People {
  resource: Resource | null
  people: Person[]
}

export interface Recent {
  n: number
  at: string | number
  style: 'rest' | 'graphql'
  /** Of GraphQL: query, mutation or subscription. */
  kind: string
  /** The name of the operation. */
  name: string
  /** The root fields of GraphQL. */
  fields: string[]
  /** The document, with `…` in the place of values; empty where it was not kept. */
  document: string
  method: string
  path: string
  status: number
  /** The code of its first error, or empty. */
  code: string
  ms: number
  /** Was it answered by a stream, whose time is how long someone listened? */
  stream: boolean
  price?: number | null
  bytes?: number | null
  statement?: string | null
  viewer?: string | null
}

export interface Series {
  name: string
  kind: string
  points: [number, number][]
}

export type Row = Record<string, unknown> & { id: string; version?: number }
