/**
 * A filter of the service from one in which a value means equality, and a list `in`.
 * `{ title: { contains: 'x' }, author: { name: 'Ann' } }` → `{ title: { contains: 'x' }, author: { name: { eq: 'Ann' } } }`
 * @param {Row} filter @returns {Row}
 */
export function where(filter: Row): Row;
/**
 * The JSON merge patch that makes one value of another: only what differs; null for what is gone.
 * @param {Row} before @param {Row} after @returns {Row}
 */
export function difference(before: Row, after: Row): Row;
/**
 * A `fetch` that carries read tokens: a page reads what it has written or seen, from any node and its replicas. Also for other
 * clients that take a `fetch`: openapi-fetch, hey-api, Apollo, urql. Streams are passed on as they are; `replace` notes a cursor of
 * one, and the earlier one that it covers.
 *
 * A request without tokens sees everything. So none are sent after a response without one, or a write without a response, until
 * a request that began later has brought a token.
 * @param {typeof fetch} send
 */
export function withReadTokens(send?: typeof fetch): ((input: RequestInfo | URL, init?: RequestInit) => Promise<Response>) & {
    replace: (old: string | undefined, cursor: string) => void;
};
/** @param {string} url where the service is @param {Options} options */
export function connect(url: string, { token, onStreamError }?: Options): {
    url: string;
    send: (path: string, { method, query, body, headers, signal }?: RequestOptions) => Promise<Response>;
    list: (resource: string, { first, offset, sort, where: filter, fields, signal }?: ListOptions) => Promise<{
        rows: Row[];
        total: number;
    }>;
    get: (resource: string, id: string | number, { fields, signal }?: {
        fields?: string;
        signal?: AbortSignal;
    }) => Promise<Row>;
    many: (resource: string, ids: (string | number)[], options?: {
        fields?: string;
        signal?: AbortSignal;
    }) => Promise<Row[]>;
    create: (resource: string, row: Row, { fields }?: {
        fields?: string;
    }) => Promise<Row>;
    createMany: (resource: string, rows: Row[]) => Promise<Row[]>;
    update: (resource: string, id: string | number, patch: Row, { version, fields }?: {
        version?: number;
        fields?: string;
    }) => Promise<Row>;
    remove: (resource: string, id: string | number, { version }?: {
        version?: number;
    }) => Promise<void>;
    each: (method: string, resource: string, ids: (string | number)[], body?: Row) => Promise<Row[]>;
    follow: (resource: string, listener: Listener) => () => void;
};
export const CONFLICT: "Someone else has changed it meanwhile. Reload it, and make your change again.";
/** A request that was refused: its status and code, and the messages of invalid fields by their names. */
export class Refused extends Error {
    /** @param {number} status @param {Row} problem */
    constructor(status: number, problem: Row);
    /** A DELETE without permission is 401, also of a viewer who is signed in: 403 keeps pages from signing out. */
    status: number;
    /** @type {string | undefined} */
    code: string | undefined;
    /** @type {Record<string, string>} */
    fields: Record<string, string>;
}
export type Row = Record<string, any>;
export type Change = {
    cursor: string;
    kind: "CREATED" | "UPDATED" | "LEFT" | "DELETED";
    rowId: string | number;
    at: string;
};
/**
 * Called with changes, or with null if some may have been missed: read anew.
 */
export type Listener = (changes: Change[] | null) => void;
export type ListOptions = {
    first?: number;
    offset?: number;
    sort?: string;
    where?: Row;
    fields?: string;
    signal?: AbortSignal;
};
export type RequestOptions = {
    method?: string;
    query?: Row;
    body?: unknown;
    headers?: Record<string, string>;
    signal?: AbortSignal;
};
export type Options = {
    token?: () => string | null | undefined | Promise<string | null | undefined>;
    onStreamError?: (error: unknown) => void;
};
export type Connection = ReturnType<typeof connect>;
