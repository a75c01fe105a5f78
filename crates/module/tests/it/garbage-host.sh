#!/bin/sh
# Program that answers with bytes that are no frame.
printf "garbage!" >&0
exec sleep 600
