-- What PostGraphile serves: views of the tables, with the rules of the model in them for a constant viewer. Smart comments say
-- what a view cannot: its key, and what refers to what.
DROP SCHEMA IF EXISTS postgraphile CASCADE;
CREATE SCHEMA postgraphile;

-- A UUIDv7, which PostgreSQL makes itself from 18 on.
CREATE FUNCTION postgraphile.uuid7() RETURNS uuid LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
  SELECT encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
    PLACING substring(int8send((extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3) FROM 1 FOR 6),
    52, 1), 53, 1), 'hex')::uuid
$$;
COMMENT ON FUNCTION postgraphile.uuid7() IS '@behavior -*';

CREATE VIEW postgraphile.users AS
  SELECT id, name, CASE WHEN id = :viewer THEN email END AS email FROM public.users;
COMMENT ON VIEW postgraphile.users IS '@primaryKey id';

CREATE VIEW postgraphile.posts AS
  SELECT id, author_id, title FROM public.posts WHERE published OR author_id = :viewer;
COMMENT ON VIEW postgraphile.posts IS
  E'@primaryKey id\n@foreignKey (author_id) references postgraphile.users (id)|@fieldName author|@foreignSimpleFieldName posts';

CREATE VIEW postgraphile.comments AS SELECT id, post_id, author_id, body FROM public.comments;
COMMENT ON VIEW postgraphile.comments IS
  E'@primaryKey id\n@foreignKey (author_id) references postgraphile.users (id)|@fieldName author\n@foreignKey (post_id) references postgraphile.posts (id)|@foreignSimpleFieldName comments';

CREATE VIEW postgraphile.orders AS
  SELECT id, version, created_at, updated_at, customer_id, status, total, currency, note FROM public.orders;
ALTER VIEW postgraphile.orders ALTER COLUMN id SET DEFAULT postgraphile.uuid7();
ALTER VIEW postgraphile.orders ALTER COLUMN version SET DEFAULT 1;
ALTER VIEW postgraphile.orders ALTER COLUMN created_at SET DEFAULT now();
ALTER VIEW postgraphile.orders ALTER COLUMN updated_at SET DEFAULT now();
ALTER VIEW postgraphile.orders ALTER COLUMN status SET DEFAULT 'pending';
COMMENT ON VIEW postgraphile.orders IS
  E'@primaryKey id\n@foreignKey (customer_id) references postgraphile.users (id)|@fieldName customer';
