#!/bin/sh
# Program that never answers.
exec sleep 600
